// A sampler as a program: replace verify. Build: rustc -O sampler.rs (no crates).
// Judge it: specref check process:./sampler. The protocol: docs/other-languages.md of specref.
use std::io::BufRead;

struct Random(u64); // SplitMix64

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

// Accepted drafts and one more token. Row i of p and q, of v tokens, is the law after i drafts.
fn verify(p: &[f64], q: &[f64], drafts: &[i64], v: usize, random: &mut Random) -> Vec<i64> {
    let mut kept = 0;
    for &x in drafts {
        let at = kept * v + x as usize;
        if random.uniform() >= p[at] / q[at] { break; }
        kept += 1;
    }
    let mut weights = p[kept * v..(kept + 1) * v].to_vec();
    if kept < drafts.len() {
        let pairs = weights.iter().zip(&q[kept * v..]);
        let residual: Vec<f64> = pairs.map(|(a, b)| (a - b).max(0.0)).collect();
        // Rounding alone can reject where p = q.
        if residual.iter().any(|&w| w > 0.0) { weights = residual; }
    }
    let (mut left, mut last) = (random.uniform() * weights.iter().sum::<f64>(), 0);
    for (token, weight) in weights.iter().enumerate() {
        if *weight > 0.0 && left >= 0.0 { (last, left) = (token as i64, left - weight); }
    }
    [&drafts[..kept], &[last]].concat()
}

fn numbers(line: &str, key: &str) -> Vec<f64> {
    let Some((_, rest)) = line.split_once(&format!("\"{key}\":")) else { return vec![] };
    let text = rest.trim_start_matches('[');
    let end = text.find(|c: char| !"0123456789.-+e,".contains(c)).unwrap_or(text.len());
    text[..end].split(',').filter_map(|number| number.parse().ok()).collect()
}

fn blocks(line: &str) -> String {
    let (one, many) = (|key| numbers(line, key)[0] as usize, |key| numbers(line, key));
    let (k, v, mut random) = (one("lookahead"), one("vocabulary"), Random(one("seed") as u64));
    let (p, q, lens) = (many("target_probs"), many("draft_probs"), many("lens"));
    let drafts: Vec<i64> = many("draft_tokens").iter().map(|&x| x as i64).collect();
    let (mut tokens, mut counts) = (vec![], vec![]);
    for c in many("case").iter().map(|&c| c as usize) {
        let given = &drafts[c * k..c * k + lens[c] as usize];
        let mut block = verify(&p[c * (k + 1) * v..], &q[c * k * v..], given, v, &mut random);
        counts.push(block.len());
        block.resize(k + 1, -1);
        tokens.extend(block);
    }
    format!(r#""tokens":{tokens:?},"counts":{counts:?}"#)
}

fn main() {
    for line in std::io::stdin().lock().lines().map(|line| line.unwrap()) {
        if line.contains(r#""request":"stop""#) { break; }
        let said = if line.contains(r#""request":"start""#) { // who takes coins claims "recovery", too
            r#""name":"my-sampler","language":"Rust","contract":"verify","takes":["seed"],
               "claims":{"rule":"standard","one_hot":false}"#.replace('\n', "")
        } else {
            blocks(&line)
        };
        println!(r#"{{"protocol":1,"id":{},{said}}}"#, numbers(&line, "id")[0]);
    }
}
