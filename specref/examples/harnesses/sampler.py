"""A sampler as a program: replace `verify`. specref check "process:python sampler.py"."""

import json
import random
import sys
from itertools import accumulate

Law = list[float]


def verify(p: list[Law], q: list[Law], drafts: list[int], rng: random.Random) -> list[int]:
    """Accepted drafts and one more token; row i of p and q is the law after i drafts."""
    n, kept = len(drafts), 0
    while kept < n and rng.random() < p[kept][drafts[kept]] / q[kept][drafts[kept]]:
        kept += 1
    weights = p[kept]
    if kept < n:
        residual = [max(a - b, 0.0) for a, b in zip(p[kept], q[kept], strict=True)]
        weights = residual if any(residual) else weights  # rounding alone can reject where p = q
    ends = list(accumulate(weights))
    u = rng.random() * ends[-1]
    return [*drafts[:kept], next(token for token, end in enumerate(ends) if u < end)]


ABOUT = {"name": "my-sampler", "language": "Python", "contract": "verify", "takes": ["seed"]}
CLAIMS = {"rule": "standard", "one_hot": False}  # who takes coins claims "recovery", too

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        said = {"protocol": 1, "id": asked["id"]}
        if asked["request"] == "stop":
            break
        if asked["request"] == "start":
            said |= {**ABOUT, "claims": CLAIMS}
        else:
            v, k, rng = asked["vocabulary"], asked["lookahead"], random.Random(asked["seed"])
            p, q = (
                [flat[start : start + v] for start in range(0, len(flat), v)]
                for flat in (asked["target_probs"], asked["draft_probs"])
            )
            tokens, counts = [], []
            for case in asked["case"]:
                at = case * k
                drafts = asked["draft_tokens"][at : at + asked["lens"][case]]
                block = verify(p[at + case : at + case + k + 1], q[at : at + k], drafts, rng)
                tokens += [*block, *[-1] * (k + 1 - len(block))]
                counts.append(len(block))
            said |= {"tokens": tokens, "counts": counts}
        print(json.dumps(said), flush=True)
