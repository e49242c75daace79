// A sampler as a program: replace verify. Build: go build sampler.go (standard library alone).
// Not run by specref's own tests. Judge it: specref check process:./sampler. The protocol:
// docs/other-languages.md of specref.
package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
)

// Accepted drafts and one more token. Row i of p and q, of v tokens, is the law after i drafts.
func verify(p, q []float64, drafts []int, v int, random *rand.Rand) []int {
	kept := 0
	for kept < len(drafts) && random.Float64() < p[kept*v+drafts[kept]]/q[kept*v+drafts[kept]] {
		kept++
	}
	weights, sum := p[kept*v:(kept+1)*v], 0.0
	residual := make([]float64, v)
	for t := 0; kept < len(drafts) && t < v; t++ {
		residual[t] = max(weights[t]-q[kept*v+t], 0)
		sum += residual[t]
	}
	if sum > 0 { // rounding alone can reject where p = q
		weights = residual
	} else {
		for _, w := range weights {
			sum += w
		}
	}
	left, last := random.Float64()*sum, 0
	for t, w := range weights {
		if w > 0 && left >= 0 {
			last, left = t, left-w
		}
	}
	return append(append([]int{}, drafts[:kept]...), last)
}

type request struct { // encoding/json ignores the case of names
	ID, Lookahead, Vocabulary int
	Request                   string
	Seed                      uint64
	Case, Lens                []int
	DraftTokens               []int     `json:"draft_tokens"`
	TargetProbs               []float64 `json:"target_probs"`
	DraftProbs                []float64 `json:"draft_probs"`
}

func blocks(r request) (tokens, counts []int) {
	k, v, random := r.Lookahead, r.Vocabulary, rand.New(rand.NewPCG(r.Seed, 0))
	for _, c := range r.Case {
		drafts := r.DraftTokens[c*k : c*k+r.Lens[c]]
		block := verify(r.TargetProbs[c*(k+1)*v:], r.DraftProbs[c*k*v:], drafts, v, random)
		counts = append(counts, len(block))
		for len(block) < k+1 {
			block = append(block, -1)
		}
		tokens = append(tokens, block...)
	}
	return tokens, counts
}

func main() {
	lines, answers := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, end := lines.ReadBytes('\n')
		var asked request
		if end != nil || json.Unmarshal(line, &asked) != nil || asked.Request == "stop" {
			return
		}
		said := map[string]any{"protocol": 1, "id": asked.ID}
		if asked.Request == "start" {
			said["name"], said["language"], said["contract"] = "my-sampler", "Go", "verify"
			said["takes"] = []string{"seed"} // who takes coins claims "recovery", too
			said["claims"] = map[string]any{"rule": "standard", "one_hot": false}
		} else {
			said["tokens"], said["counts"] = blocks(asked)
		}
		answers.Encode(said)
	}
}
