// A sampler as a program: replace verify. Build: swiftc -O sampler.swift. Not run by specref's
// own tests. Judge it: specref check process:./sampler. The protocol: docs/other-languages.md.
import Foundation

struct Random: RandomNumberGenerator {  // SplitMix64
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
    mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }
}

// Accepted drafts and one more token. Row i of p and q is the law after i drafts.
func verify(_ p: [[Double]], _ q: [[Double]], _ drafts: [Int], _ random: inout Random) -> [Int] {
    var kept = 0
    while kept < drafts.count,
        random.uniform() < p[kept][drafts[kept]] / q[kept][drafts[kept]] { kept += 1 }
    var weights = p[kept]
    if kept < drafts.count {
        let residual = zip(p[kept], q[kept]).map { max($0 - $1, 0) }
        if residual.contains(where: { $0 > 0 }) { weights = residual }  // else rounding rejected
    }
    var left = random.uniform() * weights.reduce(0, +)
    var last = 0
    for (token, weight) in weights.enumerated() where weight > 0 && left >= 0 {
        last = token
        left -= weight
    }
    return Array(drafts[..<kept]) + [last]
}

struct Head: Decodable { let id: Int, request: String }
struct Batch: Decodable {
    let lookahead: Int, vocabulary: Int, seed: UInt64
    let `case`: [Int], lens: [Int], draft_tokens: [Int]
    let target_probs: [Double], draft_probs: [Double]
}

func blocks(_ batch: Batch) -> String {
    let k = batch.lookahead, v = batch.vocabulary
    func rows(_ flat: [Double], _ first: Int, _ n: Int) -> [[Double]] {
        (first..<first + n).map { Array(flat[$0 * v..<($0 + 1) * v]) }
    }
    var random = Random(state: batch.seed), tokens: [Int] = [], counts: [Int] = []
    for c in batch.case {
        let n = batch.lens[c], drafts = Array(batch.draft_tokens[c * k..<c * k + n])
        let p = rows(batch.target_probs, c * (k + 1), n + 1), q = rows(batch.draft_probs, c * k, n)
        let block = verify(p, q, drafts, &random)
        counts.append(block.count)
        tokens += block + Array(repeating: -1, count: k + 1 - block.count)
    }
    return "\"tokens\":\(tokens),\"counts\":\(counts)"
}

let about = #""name":"my-sampler","language":"Swift","contract":"verify","takes":["seed"],"#
    + #""claims":{"rule":"standard","one_hot":false}"#  // who takes coins claims "recovery", too
while let line = readLine() {
    let data = Data(line.utf8), head = try JSONDecoder().decode(Head.self, from: data)
    if head.request == "stop" { break }
    let said = head.request == "start" ? about : blocks(try JSONDecoder().decode(Batch.self, from: data))
    FileHandle.standardOutput.write(Data("{\"protocol\":1,\"id\":\(head.id),\(said)}\n".utf8))
}
