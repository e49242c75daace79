// A sampler as a program: replace verify. No packages.
// Judge it: specref check "process:node sampler.js". The protocol: docs/other-languages.md.
"use strict";

// Accepted drafts and one more token. Row i of p and q is the law after i drafts.
function verify(p, q, drafts, uniform) {
  let kept = 0;
  while (kept < drafts.length && uniform() < p[kept][drafts[kept]] / q[kept][drafts[kept]]) kept++;
  let weights = p[kept];
  if (kept < drafts.length) {
    const residual = weights.map((w, t) => Math.max(w - q[kept][t], 0));
    if (residual.some((w) => w > 0)) weights = residual; // rounding alone can reject where p = q
  }
  let left = uniform() * weights.reduce((a, b) => a + b), last = 0;
  weights.forEach((w, t) => { if (w > 0 && left >= 0) { last = t; left -= w; } });
  return [...drafts.slice(0, kept), last];
}

function generator(seed) { // sfc32
  let a = seed >>> 0, b = Math.floor(seed / 2 ** 32), c = 0x9e3779b9, d = 1;
  const next = () => {
    const t = (a + b + d) | 0;
    d = (d + 1) | 0; a = b ^ (b >>> 9); b = (c + (c << 3)) | 0; c = ((c << 21) | (c >>> 11)) + t | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 15; i++) next();
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

function blocks({ case: cases, lookahead: k, vocabulary: v, lens, seed, ...batch }) {
  const uniform = generator(seed), tokens = [], counts = [];
  const rows = (flat, first, n) =>
    Array.from({ length: n }, (_, i) => flat.slice((first + i) * v, (first + i + 1) * v));
  for (const c of cases) {
    const n = lens[c], drafts = batch.draft_tokens.slice(c * k, c * k + n);
    const [p, q] = [rows(batch.target_probs, c * (k + 1), n + 1), rows(batch.draft_probs, c * k, n)];
    const block = verify(p, q, drafts, uniform);
    counts.push(block.length);
    tokens.push(...block, ...Array(k + 1 - block.length).fill(-1));
  }
  return { tokens, counts };
}

const about = { name: "my-sampler", language: "JavaScript", contract: "verify", takes: ["seed"] };
const claims = { rule: "standard", one_hot: false }; // who takes coins claims "recovery", too
require("readline").createInterface({ input: process.stdin, terminal: false }).on("line", (line) => {
  const { id, request, ...batch } = JSON.parse(line);
  if (request === "stop") process.exit(0);
  const said = request === "start" ? { ...about, claims } : blocks(batch);
  process.stdout.write(JSON.stringify({ protocol: 1, id, ...said }) + "\n");
});
