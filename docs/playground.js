// One iteration of speculative decoding: its exact law, and a run coin by coin. No packages.
// The page is playground.html. In node, for the tests:
//   node playground.js --serve [RULE]   verifies drafts by docs/other-languages.md
//   node playground.js --laws           a line of JSON {rule, p, q, lookahead} in, its laws out
"use strict";

const sum = (weights) => weights.reduce((a, b) => a + b, 0);
const excess = (p, q) => p.map((x, t) => Math.max(x - q[t], 0));
const distance = (a, b) => sum(excess(a, b));
const range = (n) => Array.from({ length: n }, (_, i) => i);
const ratio = (p, q) => (p > 0 ? Math.min(1, p / q) : 0);
const normalised = (weights) => (sum(weights) > 0 ? weights.map((w) => w / sum(weights)) : weights);

// ---- Rules. P[i] and Q[i] are the laws after i drafts; chance decides. ----

// Token by token. `keep` has the ratios of draft i and the least of those before it.
function standard(P, Q, drafts, chance, { keep, rest, last }) {
  let least = 1;
  for (const [i, x] of drafts.entries()) {
    if (!chance.accept(keep(P[i][x], Q[i][x], least), `accept ${i + 1}`)) {
      return [...drafts.slice(0, i), chance.draw(rest(P[i], Q[i]), "residual")];
    }
    least = Math.min(least, ratio(P[i][x], Q[i][x]));
  }
  const n = drafts.length;
  return [...drafts, chance.draw(last(P[n], Q[n] ?? Q[n - 1] ?? P[n]), "bonus")];
}

// All drafts jointly, from the last one back (Sun et al. 2024, Algorithm 2).
function block(P, Q, drafts, chance, { rest }) {
  let survival = 1;
  const stops = drafts.map((x, i) => {
    const left = P[i].map((w) => survival * w), total = distance(left, Q[i]);
    const stop = { h: total > 0 ? total / (total + 1 - survival) : 0, weights: rest(P[i], Q[i], left) };
    survival = ratio(left[x], Q[i][x]);
    return stop;
  });
  let i = drafts.length;
  if (i === 0 || chance.accept(survival, `accept ${i}`)) return [...drafts, chance.draw(P[i], "bonus")];
  for (i -= 1; i > 0 && !chance.accept(stops[i].h, `accept ${i}`); i -= 1);
  return [...drafts.slice(0, i), chance.draw(stops[i].weights, "residual")];
}

// The target's own draws, while they are the drafted tokens (Timor et al. 2025, Algorithm 2).
function match(P, Q, drafts, chance) {
  for (const [i, x] of drafts.entries()) {
    const token = chance.draw(P[i], `target ${i + 1}`);
    if (token !== x) return [...drafts.slice(0, i), token];
  }
  return [...drafts, chance.draw(P[drafts.length], `target ${drafts.length + 1}`)];
}

// ---- Two vocabularies: rows have a column for each token of either, 0 where a model lacks it. ----

const START = { p: [0.5, 0.2, 0.2, 0.1], q: [0.2, 0.5, 0.1, 0.2], rule: "standard", lookahead: 2,
  seed: 9, coins: 0 };
const FAMILIES = {
  one: { told: "One vocabulary", pair: ["standard", "block"], names: [..."abcde"], p: START.p, q: START.q },
  shared: { told: "Two vocabularies, compared by token", pair: ["union", "tli"], names: [..."abcd"],
    p: [0.5, 0.3, 0.2, 0], q: [0.3, 0.3, 0, 0.4] },
  text: { told: "Two vocabularies, compared by text", pair: ["slem", "slrs"], names: ["a", "b", "ab"],
    p: [0.4, 0.2, 0.4], q: [0.6, 0.4, 0] },
};

// q on the tokens that the target has, renormalised.
const confined = (q) => normalised(q.map((w, t) => (FAMILIES.shared.p[t] > 0 ? w : 0)));
const texts = (n) => range(2 ** n).map((x) => range(n).map((i) => (x >> (n - 1 - i)) & 1));
const spell = (letters) => letters.map((t) => "ab"[t]).join("");
// Drafted letters as the target reads them: the longest token first.
const reread = (letters) => spell(letters).match(/ab|a|b/g).map((x) => FAMILIES.text.names.indexOf(x));

// The distribution of the target's token after `before`, in a text of n letters drawn from q.
function psi(q, n, before = []) {
  const law = q.map(() => 0);
  for (const letters of texts(n)) {
    const tokens = reread(letters), fits = before.every((t, i) => t === tokens[i]);
    if (fits && tokens.length > before.length) {
      law[tokens[before.length]] += letters.reduce((w, t) => w * q[t], 1);
    }
  }
  return normalised(law);
}

// Rounding alone can reject where p nowhere exceeds q: then the token is drawn from p.
const residual = (p, q) => (distance(p, q) > 0 ? excess(p, q) : p);
const right = { keep: ratio, rest: residual, last: (p) => p };
const jointly = { rest: (p, q, left) => residual(left, q) };

// Each bug replaces one part. Ids are those of the zoo. `mu` is what is submitted to the target, where that
// is not q, and `named` its name; `keeps` is the probability that a token is drafted and accepted.
const RULES = {
  "standard": { told: "standard: token by token", by: standard, parts: right },
  "block": { told: "block: all drafts jointly", by: block, parts: jointly },
  "residual-is-p": { told: "bug: redraws from p, no residual", by: standard,
    parts: { ...right, rest: (p) => p } },
  "residual-is-q": { told: "bug: redraws from q", by: standard,
    parts: { ...right, rest: (p, q) => q } },
  "inverted-ratio": { told: "bug: accepts with q/p, not p/q", by: standard,
    parts: { ...right, keep: (p, q) => ratio(q, p) } },
  "always-accept-u0": { told: "bug: accepts every draft", by: standard,
    parts: { ...right, keep: () => 1 } },
  "algorithm-5-as-printed": { told: "bug: bonus from the residual", by: standard,
    parts: { ...right, last: residual } },
  "bonus-from-drafter": { told: "bug: bonus from q", by: standard,
    parts: { ...right, last: (p, q) => q } },
  "shared-u": { told: "bug: one uniform for all drafts", by: standard,
    parts: { ...right, keep: (p, q, least) => Math.min(ratio(p, q), least) / least } },
  "block-tokenwise-residual": { told: "bug: block, residual of standard", by: block,
    parts: { rest: (p, q) => residual(p, q) } },
  "union": { told: "union: a token that the target lacks is rejected", family: "shared", by: standard,
    parts: right },
  "tli": { told: "TLI: drafts shared tokens alone, from q'", family: "shared", by: standard, parts: right,
    named: "q'", mu: confined },
  "slem": { told: "SLEM: the target must draw the drafted token", family: "text", by: match,
    named: "psi", mu: psi, keeps: (p, mu) => p * mu },
  "slrs": { told: "SLRS: accepts with min(1, p / psi)", family: "text", by: standard, parts: right,
    named: "psi", mu: psi },
};
const familyOf = (rule) => FAMILIES[RULES[rule].family ?? "one"];

const verify = (rule, P, Q, drafts, chance) =>
  RULES[rule].by(P, Q, drafts, chance, RULES[rule].parts);

// The distribution of the first token that is submitted to the target.
const submitted = ({ rule, q, lookahead }) => RULES[rule].mu?.(q, lookahead) ?? q;

// Drafts, the same distribution at each position, and their verification.
function step(state, chance) {
  const { rule, p, q, lookahead } = state, byText = familyOf(rule) === FAMILIES.text;
  const from = byText ? q : submitted(state), count = sum(from) > 0 ? lookahead : 0;
  const drawn = range(count).map((i) => chance.draw(from, `draft ${i + 1}`));
  const drafts = byText ? reread(drawn) : drawn;
  const after = (i) => (byText ? psi(q, lookahead, drafts.slice(0, i)) : from);
  return verify(rule, Array(lookahead + 1).fill(p), drafts.map((_, i) => after(i)), drafts, chance);
}

// ---- Readings of chance: all paths with their weights, or one path by uniforms. ----

// `choose` has the weights of the branches, and gives one; a coin's branches are yes and no.
const reading = (choose) => ({
  draw: (weights, site) => choose(weights, sum(weights), site),
  accept: (probability, site) => choose([probability, 1 - probability], 1, site) === 0,
});

function byUniforms(uniform, coins = []) {
  return reading((weights, total, site) => {
    const u = uniform(site);
    let choice = -1, below = 0;
    while (choice < weights.length - 1 && u * total >= below) below += weights[++choice];
    while (!(weights[choice] > 0)) choice -= 1; // the sum may round to less than u
    coins.push({ site, weights: weights.map((w) => w / total), u, choice });
    return choice;
  });
}

// Runs the program again along every branch that a path left open.
function lawOf(program) {
  const law = new Map(), open = [[]];
  while (open.length) {
    const prefix = open.pop(), path = [];
    let weight = 1;
    const outcome = program(reading((weights, total) => {
      const possible = range(weights.length).filter((t) => weights[t] > 0);
      const choice = path.length < prefix.length ? prefix[path.length] : possible[0];
      if (path.length >= prefix.length) open.push(...possible.slice(1).map((t) => [...path, t]));
      path.push(choice);
      weight *= weights[choice] / total;
      return choice;
    }));
    law.set(outcome.join(), (law.get(outcome.join()) ?? 0) + weight);
  }
  return law;
}

// What one iteration emits, and that completed by the target to lookahead + 1 tokens.
function analyse(state) {
  const { p, lookahead } = state, blocks = lawOf((chance) => step(state, chance));
  const target = new Map(), completed = new Map(), first = p.map(() => 0);
  const extend = (tokens, weight, law) => {
    if (tokens.length <= lookahead) return p.forEach((w, t) => extend([...tokens, t], weight * w, law));
    law.set(tokens.join(), (law.get(tokens.join()) ?? 0) + weight);
  };
  extend([], 1, target);
  let tokens = 0;
  for (const [name, weight] of blocks) {
    const found = name.split(",").map(Number);
    first[found[0]] += weight;
    tokens += weight * found.length;
    extend(found, weight, completed);
  }
  const mu = submitted(state), rest = excess(p, mu), { keeps = Math.min } = RULES[state.rule];
  const law = [...target].map(([name, wanted]) => [name, completed.get(name) ?? 0, wanted])
    .filter(([, has, wants]) => has || wants);
  return {
    submitted: mu, accepted: sum(p.map((w, t) => keeps(w, mu[t]))), tokens, first,
    residual: sum(rest) > 0 ? normalised(rest) : null,
    blocks: Object.fromEntries(blocks), completed: law,
    tvFirst: distance(p, first), tv: sum(law.map(([, has, wants]) => Math.max(wants - has, 0))),
  };
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

// ---- Reading and writing #p=1/2,1/2&q=…&rule=block&k=2&seed=1&coins=3 ----

function readRow(name, text, family) {
  const row = text.split(",").map((part) => {
    const [above, below, ...more] = part.split("/").map((x) => (x.trim() ? Number(x) : NaN));
    return more.length ? NaN : above / (below ?? 1);
  });
  const { names, [name]: example } = family, one = family === FAMILIES.one;
  const fits = one ? row.length >= 3 && row.length <= 5
    : row.length === names.length && row.every((x, t) => example[t] || !x);
  if (fits && row.every((x) => x >= 0 && x <= 1) && Math.abs(sum(row) - 1) <= 1e-9) return row;
  const wanted = one ? "3 to 5 probabilities" : `probabilities of ${names.join(", ")}`;
  const lacks = one ? [] : names.filter((_, t) => !example[t]);
  const zero = lacks.map((x) => `, and 0 for ${x}`);
  throw new Error(`${name} = ${text}: expected ${wanted} with the sum 1${zero}`);
}

function readWhole(name, text, least, most) {
  if (/^\d+$/.test(text) && text >= least && text <= most) return Number(text);
  throw new Error(`${name} = ${text}: expected an integer from ${least} to ${most}`);
}

function readFragment(fragment) {
  const told = new URLSearchParams(fragment.replace(/^#/, "")), state = { ...START };
  if (told.has("rule")) state.rule = told.get("rule");
  if (!Object.hasOwn(RULES, state.rule)) throw new Error(`rule = ${state.rule}: expected one of the list`);
  const family = familyOf(state.rule);
  for (const name of ["p", "q"]) {
    state[name] = told.has(name) ? readRow(name, told.get(name), family) : family[name];
  }
  if (state.p.length !== state.q.length) throw new Error("p and q: expected as many tokens in both");
  if (told.has("k")) state.lookahead = readWhole("k", told.get("k"), 1, 3);
  if (told.has("seed")) state.seed = readWhole("seed", told.get("seed"), 0, 2 ** 53 - 1);
  if (told.has("coins")) state.coins = readWhole("coins", told.get("coins"), 0, 7);
  return state;
}

const fragmentOf = ({ p, q, rule, lookahead, seed, coins }) =>
  `#p=${p.join()}&q=${q.join()}&rule=${rule}&k=${lookahead}&seed=${seed}&coins=${coins}`;

// Gives token t so many hundredths; the others that a model has share the rest as they did in `base`.
function moved(base, t, hundredths, has = base.map(() => 1)) {
  const others = sum(base) - base[t], left = 100 - hundredths, count = has.filter(Boolean).length - 1;
  const wanted = base.map((w, i) =>
    i === t ? hundredths : others > 1e-9 ? (left * w) / others : has[i] ? left / count : 0);
  const row = wanted.map((w) => Math.floor(w + 1e-9));
  const short = range(row.length).filter((i) => i !== t)
    .sort((i, j) => wanted[j] - row[j] - (wanted[i] - row[i]) || i - j);
  for (let i = 0; sum(row) < 100; i++) row[short[i]] += 1;
  return row.map((w) => w / 100);
}

// ---- The page ----

const shown = (x) => (x < 5e-13 ? "0" : x < 0.001 ? x.toExponential(1) : x.toFixed(4));

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("--") || name === "width") made.style.setProperty(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function page() {
  const at = (id) => document.getElementById(id);
  const put = (id, ...children) => at(id).replaceChildren(...children);
  const percent = (x) => `${100 * x}%`;
  let state = { ...START };
  const names = () => familyOf(state.rule).names;
  const spelled = (tokens) => tokens.map((t) => names()[t]).join(" ");
  // Whether the model of a row has token t.
  const has = (name, t) => familyOf(state.rule) === FAMILIES.one || familyOf(state.rule)[name][t] > 0;

  function draw() {
    history.replaceState(null, "", fragmentOf(state));
    at("rule").value = state.rule;
    for (const name of ["lookahead", "size"]) {
      const value = name === "size" ? state.p.length : state.lookahead;
      document.querySelector(`input[name=${name}][value="${value}"]`).checked = true;
    }
    at("size").hidden = familyOf(state.rule) !== FAMILIES.one;
    const columns = `${state.p.length} ${RULES[state.rule].family} ${RULES[state.rule].named}`;
    if (at("bars").dataset.columns !== columns) put("bars", ...range(state.p.length).map(column));
    at("bars").dataset.columns = columns;
    const found = analyse(state);
    drawBars(found);
    drawWords();
    drawFigures(found);
    drawPair();
    drawCoins();
  }

  function column(t) {
    const { named } = RULES[state.rule];
    const parts = () => ["over", "both"].map((part) => element("span", { class: part }));
    const slot = (name, bar) => element("div", { class: "slot" }, element("span", { class: "value" }), bar,
      element("span", {}, name));
    const bars = ["p", "q"].filter((name) => has(name, t)).map((name) => {
      const slider = element("div", { class: `bar ${name}`, role: "slider", tabindex: 0,
        "data-row": name, "data-token": t, "aria-valuemin": 0, "aria-valuemax": 1,
        "aria-orientation": "vertical", "aria-label": `${name} of token ${names()[t]}` }, ...parts());
      let base = null;
      const set = (hundredths, from) => {
        state = { ...state, [name]: moved(from, t, Math.round(Math.min(100, Math.max(0, hundredths))),
          from.map((_, i) => has(name, i))) };
        draw();
      };
      const drag = ({ clientY }) => {
        const box = slider.getBoundingClientRect();
        if (base) set((100 * (box.bottom - clientY)) / box.height, base);
      };
      slider.addEventListener("pointerdown", (event) => {
        base = state[name];
        drag(event);
        slider.setPointerCapture(event.pointerId);
      });
      slider.addEventListener("pointermove", drag);
      for (const end of ["pointerup", "pointercancel"]) slider.addEventListener(end, () => { base = null; });
      slider.addEventListener("keydown", (event) => {
        const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10,
          Home: -100, End: 100 }[event.key];
        if (!by) return;
        event.preventDefault();
        set(100 * state[name][t] + by, state[name]);
      });
      return slot(name, slider);
    });
    if (named && has("p", t)) {
      const about = { class: "bar mu", role: "img", "data-row": "mu", "data-token": t };
      bars.push(slot(named, element("div", about, ...parts())));
    }
    return element("div", { class: "token" }, element("div", { class: "pair" }, ...bars),
      element("strong", {}, names()[t]));
  }

  function drawBars({ submitted: mu }) {
    const { named, keeps = Math.min } = RULES[state.rule];
    document.querySelectorAll(".bar").forEach((bar) => {
      const { row, token: t } = bar.dataset, value = { ...state, mu }[row][t];
      const plain = row === "q" && named; // mu is compared with p, and not q
      bar.classList.toggle("plain", Boolean(plain));
      if (row === "mu") bar.setAttribute("aria-label", `${named} of token ${names()[t]}: ${shown(value)}`);
      else bar.setAttribute("aria-valuenow", value);
      bar.querySelector(".over").style.height = percent(value);
      bar.querySelector(".both").style.height = percent(plain ? 0 : keeps(state.p[t], mu[t]));
      // Of three bars each is narrow on a phone.
      bar.previousElementSibling.textContent = named ? value.toFixed(2).replace(/^0/, "") : value.toFixed(2);
    });
  }

  // What the colours and figures are, in the words of the rule.
  function drawWords() {
    const { family, keeps, named = "q" } = RULES[state.rule];
    const both = keeps ? `p · ${named}` : `min(p, ${named})`;
    put("key-both", `${both}: ${family ? "accepted" : "can be accepted"}`);
    put("key-p", keeps ? "the rest of p: the target draws another token" : `p above ${named}: the residual`);
    put("key-mu", keeps ? `the rest of ${named}: not accepted`
      : `${named} above p: ${family ? "rejected" : "what the standard rule rejects"}`);
    const what = family ? "is accepted of the first token" : "the standard rule accepts";
    put("accepts", `Sum of ${both}, what ${what}`);
    put("residual-of", `Residual, norm((p − ${named})+)`);
    const read = texts(state.lookahead).map((x) => `${spell(x)} → ${spelled(reread(x))}`).join(", ");
    const byText = `The target's tokenizer reads drafted letters, the longest token first: ${read}. `
      + "psi is the distribution of the first token that it reads.";
    const byToken = "The target has no d, the draft model has no c.";
    put("reads", { text: byText, shared: byToken }[family] ?? "");
  }

  // The lossless rules of the family, next to each other.
  function drawPair() {
    put("pair", ...familyOf(state.rule).pair.map((rule) => {
      const { accepted, tokens } = analyse({ ...state, rule });
      return element("tr", {}, element("th", { scope: "row" }, rule),
        element("td", { class: "track" }, element("span", { class: "has", width: percent(accepted) })),
        element("td", {}, shown(accepted)), element("td", {}, shown(tokens)));
    }));
  }

  function drawFigures({ accepted, residual: rest, tokens, first, completed, tv, tvFirst }) {
    const lossless = tv < 1e-9;
    at("verdict").className = lossless ? "good" : "bad";
    put("verdict", lossless ? "Lossless for this p and q: the completed block has the target's distribution."
      : `Lossy: the completed block is ${shown(tv)} away from the target's distribution.`);
    put("accepted", shown(accepted));
    const drawn = range(first.length).filter((t) => rest?.[t] > 0);
    put("residual", RULES[state.rule].keeps ? "not drawn from"
      : drawn.map((t) => `${names()[t]} ${shown(rest[t])}`).join(", ") || "none: p = q");
    put("tokens", shown(tokens));
    put("tv-first", shown(tvFirst));
    put("tv", shown(tv));
    const row = (name, made, wants) => {
      const off = Math.abs(made - wants) > 1e-9 ? (made > wants ? "over" : "under") : "";
      return element("tr", { class: off }, element("th", { scope: "row" }, name),
        element("td", { class: "track" }, element("span", { class: "has", width: percent(made / largest) }),
          element("i", { "--at": percent(wants / largest) })),
        element("td", {}, shown(made)), element("td", {}, shown(wants)));
    };
    let largest = Math.max(...first, ...state.p);
    put("first", ...range(first.length).filter((t) => has("p", t))
      .map((t) => row(names()[t], first[t], state.p[t])));
    const worst = [...completed].sort((a, b) =>
      (lossless ? 0 : Math.abs(b[1] - b[2]) - Math.abs(a[1] - a[2])) || b[2] - a[2]).slice(0, 8);
    largest = Math.max(...worst.flatMap(([, made, wants]) => [made, wants])) || 1;
    put("blocks", ...worst.map(([name, made, wants]) => row(spelled(name.split(",")), made, wants)));
    const which = lossless ? "likeliest" : "furthest off";
    put("which", `${worst.length} of ${completed.length} blocks, the ${which}`);
  }

  function drawCoins() {
    const coins = [], made = step(state, byUniforms(generator(state.seed), coins));
    const count = Math.min(state.coins, coins.length), done = count === coins.length;
    put("coins", ...coins.slice(0, count).map(({ site, weights, u, choice }) => {
      const toss = site.startsWith("accept"), what = toss ? ["accept", "reject"] : names();
      const parts = weights.map((w, t) => element("span", { class: t === choice ? "part chosen" : "part",
        width: percent(w), title: `${what[t]}: ${shown(w)}` }, toss && w < 0.18 ? "" : what[t]))
        .filter((_, t) => weights[t] > 0);
      const said = toss ? `accepts below ${shown(weights[0])}; u = ${u.toFixed(3)}: ${what[choice]}`
        : `u = ${u.toFixed(3)}: ${what[choice]}, which has probability ${shown(weights[choice])}`;
      return element("li", {}, element("div", {}, element("strong", {}, site), ` ${said}`),
        element("div", { class: "coin" }, ...parts, element("i", { "--at": percent(u) })));
    }));
    put("block", done ? `Block: ${spelled(made)}. ${made.length - 1} accepted, then one more token.`
      : `${count} random numbers drawn.`);
    at("next").disabled = done;
  }

  const change = (changes) => { state = { ...state, ...changes }; draw(); };
  const resized = (row, size) => {
    if (row.length < size) return resized(moved([...row, 0], row.length, 10), size);
    return row.length > size ? moved(row.slice(0, size), 0, Math.round(100 * row[0])) : row;
  };
  function load() {
    put("problem");
    try {
      state = readFragment(location.hash);
    } catch (error) {
      state = { ...START };
      put("problem", `${error.message}. What is shown is the example.`);
    }
    draw();
  }
  put("rule", ...Object.values(FAMILIES).map((family) => element("optgroup", { label: family.told },
    ...Object.entries(RULES).filter(([id]) => familyOf(id) === family)
      .map(([id, { told }]) => element("option", { value: id }, told)))));
  at("rule").addEventListener("change", ({ target: { value: rule } }) => {
    const { p, q } = familyOf(rule) === familyOf(state.rule) ? state : familyOf(rule);
    change({ rule, p, q, coins: 0 });
  });
  document.querySelectorAll("input[name=lookahead]").forEach((input) =>
    input.addEventListener("change", () => change({ lookahead: +input.value, coins: 0 })));
  document.querySelectorAll("input[name=size]").forEach((input) => input.addEventListener("change", () =>
    change({ p: resized(state.p, +input.value), q: resized(state.q, +input.value), coins: 0 })));
  at("next").addEventListener("click", () => change({ coins: state.coins + 1 }));
  at("all").addEventListener("click", () => change({ coins: 7 }));
  at("again").addEventListener("click", () => change({ seed: state.seed + 1, coins: 0 }));
  at("reset").addEventListener("click", () => change({ ...START }));
  window.addEventListener("hashchange", load);
  load();
}

// ---- Node ----

function answer(rule, { case: cases, lookahead: k, vocabulary: v, lens, seed, ...batch }) {
  const uniform = generator(seed), tokens = [], counts = [];
  const rows = (flat, from, n) => range(n).map((i) => flat.slice((from + i) * v, (from + i + 1) * v));
  for (const [row, c] of cases.entries()) {
    const given = (site) =>
      site.startsWith("accept") ? batch.accept[row * k + Number(site.slice(7)) - 1] : batch.final[row];
    const chance = byUniforms(batch.final ? given : uniform);
    const n = lens[c], drafts = batch.draft_tokens.slice(c * k, c * k + n);
    const P = rows(batch.target_probs, c * (k + 1), n + 1), Q = rows(batch.draft_probs, c * k, n);
    const made = verify(rule, P, Q, drafts, chance);
    counts.push(made.length);
    tokens.push(...made, ...Array(k + 1 - made.length).fill(-1));
  }
  return { tokens, counts };
}

function node([mode, rule = "standard"]) {
  const served = Object.keys(RULES).filter((id) => familyOf(id) === FAMILIES.one);
  if (!["--serve", "--laws"].includes(mode) || !served.includes(rule)) {
    const given = process.argv.slice(2).join(" ");
    console.error(`arguments = ${given}: expected --laws, or --serve and one of ${served}`);
    process.exit(2);
  }
  const claims = { rule: RULES[rule].by === block ? "block" : "standard", one_hot: false,
    recovery: "inverse" };
  const about = { name: `playground, ${rule}`, language: "JavaScript", contract: "verify",
    takes: ["coins", "seed"], claims };
  const lines = require("readline").createInterface({ input: process.stdin, terminal: false });
  lines.on("line", (line) => {
    const { id, request, ...asked } = JSON.parse(line);
    if (request === "stop") process.exit(0);
    const said = mode === "--laws" ? analyse(asked)
      : { protocol: 1, id, ...(request === "start" ? about : answer(rule, asked)) };
    process.stdout.write(JSON.stringify(said) + "\n");
  });
}

if (typeof document === "object") page();
else node(process.argv.slice(2));
