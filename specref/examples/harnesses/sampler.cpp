// A sampler as a program: replace verify. Build: g++ -O2 -o sampler sampler.cpp (no libraries).
// Judge it: specref check process:./sampler. The protocol: docs/other-languages.md of specref.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>
using Numbers = std::vector<double>;

// Accepted drafts and one more token. Row i of p and q, of V tokens, is the law after i drafts.
std::vector<int> verify(const double* p, const double* q, const std::vector<int>& drafts, int V,
                        std::mt19937_64& random) {
  auto uniform = [&] { return (random() >> 11) * 0x1p-53; };
  const int n = drafts.size();
  int kept = 0, last = 0;
  for (; kept < n && uniform() < p[drafts[kept]] / q[drafts[kept]]; ++kept) p += V, q += V;
  Numbers weights(p, p + V), residual(weights);
  for (int t = 0; t < V && kept < n; ++t) residual[t] = p[t] > q[t] ? p[t] - q[t] : 0;
  double sum = std::accumulate(residual.begin(), residual.end(), 0.0);
  if (sum > 0) weights = residual;  // rounding alone can reject where p = q
  double left = uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int t = 0; t < V; ++t)
    if (weights[t] > 0 && left >= 0) last = t, left -= weights[t];
  std::vector<int> block(drafts.begin(), drafts.begin() + kept);
  block.push_back(last);
  return block;
}

Numbers numbers(const std::string& line, const std::string& key) {
  const char* at = line.c_str() + line.find("\"" + key + "\":") + key.size() + 3;
  Numbers found;
  for (at += *at == '['; *at == '-' || (*at >= '0' && *at <= '9'); at += *at == ',') {
    char* end;
    found.push_back(std::strtod(at, &end));
    at = end;
  }
  return found;
}

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    auto is = [&](const char* s) { return line.find(s) != line.npos; };
    auto one = [&](const char* key) { return (long long)numbers(line, key).at(0); };
    if (is("\"request\":\"stop\"")) break;
    std::printf("{\"protocol\":1,\"id\":%lld,", one("id"));
    if (is("\"request\":\"start\"")) {  // who takes coins claims "recovery", too
      std::printf(R"("name":"my-sampler","language":"C++","contract":"verify","takes":["seed"],)"
                  R"("claims":{"rule":"standard","one_hot":false})");
    } else {
      const auto p = numbers(line, "target_probs"), q = numbers(line, "draft_probs");
      const auto drafts = numbers(line, "draft_tokens"), lens = numbers(line, "lens");
      const size_t K = one("lookahead"), V = one("vocabulary");
      std::mt19937_64 random(one("seed"));
      std::string tokens, counts;
      for (size_t c : numbers(line, "case")) {
        const auto first = drafts.begin() + c * K;
        auto block = verify(&p[c * (K + 1) * V], &q[c * K * V], {first, first + lens[c]}, V, random);
        counts += "," + std::to_string(block.size());
        block.resize(K + 1, -1);
        for (int token : block) tokens += "," + std::to_string(token);
      }
      std::printf("\"tokens\":[%s],\"counts\":[%s]", &tokens[1], &counts[1]);
    }
    std::printf("}\n"), std::fflush(stdout);
  }
}
