"""What the page of a rule says of it in words and in a formula.

docs/choose-an-algorithm.md is read from the rules' side in `WHEN`; `DIFFERS` is the column of
README, and `ACCEPTS` the acceptance formula, as LaTeX.
"""

from collections.abc import Mapping

WHEN: Mapping[str, str] = {
    "autoregressive": "If nothing is drafted. Other rules are compared with it.",
    "standard": "For one chain of draft tokens in the target's vocabulary, with the least code. "
    "Use q = 1 for draft tokens that are certain, such as lookup or argmax.",
    "union": "As the simplest rule for two vocabularies. TLI accepts at least as much.",
    "tli": "For two vocabularies that share most of what is drafted.",
    "slem": "For two vocabularies that share little and read each other's text, without psi.",
    "slrs": "For two vocabularies that share little and read each other's text, if you can "
    "afford psi, the draft model's distribution over all spellings of a token.",
    "block": "For one chain of draft tokens in the target's vocabulary. It accepts at least as "
    "many as standard, in expectation.",
    "greedy-block": "If you stop after one iteration: it accepts the most there, and pays later.",
    "block-slrs": "In place of SLRS, if draft tokens may be accepted jointly.",
    "lazy-slrs": "In place of SLRS: it accepts the same, with bounds of psi.",
    "path-slrs": "For two vocabularies by text, without psi. It accepts as much as SLRS, or less.",
    "recursive-rejection": "For several draft tokens of one position: the default.",
    "matching": "For several draft tokens of one position, if the sampler draws from p anyway.",
    "k-seq": "For several draft tokens of one position that are drawn with replacement.",
    "top-drafts": "For several draft tokens of one position, if you choose how to draft: the "
    "likeliest tokens, and one draw outside of them.",
    "spechub": "As top-drafts, for two draft tokens of one position.",
    "optimal": "For several draft tokens of one position over a small vocabulary.",
    "topdown": "For a tree of draft tokens. It reads nothing below a rejected sibling.",
    "traversal": "For a tree of draft tokens, with siblings drawn with replacement: it accepts "
    "every prefix at least as often as topdown.",
    "ngrams": "For several draft tokens of one position that are certain, such as continuations "
    "found in the context.",
    "companion": "If a third model says how many draft tokens to verify, before each is drawn.",
    "companion-rejecting": "If a third model judges draft tokens that were drawn.",
    "companion-published": "Never for sampling: it is lossy there.",
}
TIMOR = "bonus token from p, not from the residual (Alg. 5, line 12, of the earlier edition)"
DIFFERS: Mapping[str, str] = {
    "standard": TIMOR,
    "union": "q' in line 4; a draft token that the target lacks is rejected, not dropped; "
    + TIMOR,
    "tli": f"q' is defined on shared tokens; an empty intersection drafts nothing; {TIMOR}",
    "slem": "stops at the first mismatch, not at the argmin; keeps the target's token ids",
    "slrs": "psi is a push-forward; n draft tokens, not n + 1; several tokens an iteration",
    "lazy-slrs": "decides by bounds of psi",
    "path-slrs": "decides by the drafted path, without psi",
    "block-slrs": "block verification of psi, which the paper does not have",
    "k-seq": "refuses a rho that is lossy",
    "ngrams": "adds sampling: one target draw a position, compared with all draft tokens",
    "companion": "decides before each draft token is drawn",
    "companion-rejecting": "what the companion declines counts as rejected",
}
"""Of rules that are not as their paper prints them."""
RATIO = r"\min\left(1, \frac{p(x)}{q(x)}\right)"
BLOCK = (
    r"P_i = \min\left(1, P_{i-1} \frac{p(x_i)}{q(x_i)}\right) \qquad "
    r"h_i = \frac{\sum_x \max(P_i p(x) - q(x), 0)}{\sum_x \max(P_i p(x) - q(x), 0) + 1 - P_i}"
)
TEXT = r"\min\left(1, \frac{p(x)}{\psi(x)}\right) \qquad \psi(x) = \sum_{d \to x} \prod_i q(d_i)"
ACCEPTS: Mapping[str, str] = {
    "standard": RATIO,
    "union": r"\min\left(1, \frac{p(x)}{q'(x)}\right) \qquad q' = q \text{ on } T \cup D",
    "tli": r"\min\left(1, \frac{p(x)}{q'(x)}\right) \qquad "
    r"q'(x) = \frac{q(x)}{\sum_{y \in T \cap D} q(y)}, \; x \in T \cap D",
    "slem": r"P(\text{accepted}) = \sum_x p(x) \, \psi(x)",
    "slrs": TEXT,
    "lazy-slrs": TEXT,
    "block": BLOCK,
    "block-slrs": BLOCK.replace("q(", r"\psi("),
}
"""Where it is one formula."""
PICTURED: Mapping[str, tuple[str, str]] = {
    "standard": ("accepted", "The common part of p and q is accepted; the residual fills p up."),
    **dict.fromkeys(
        ("union", "tli", "slem", "slrs"),
        (
            "vocabularies",
            "What four rules accept of the first token, on one pair of vocabularies.",
        ),
    ),
}
"""{rule: (name of a picture, what it shows)}."""
