"""When to take each rule, in a sentence: docs/choose-an-algorithm.md, read from its rules."""

from collections.abc import Mapping

WHEN: Mapping[str, str] = {
    "autoregressive": "Where nothing is drafted: it is what the other rules are measured by.",
    "standard": "For a chain of drafts in the target's vocabulary, with the least code; with "
    "q = 1 for drafts that are certain, such as lookup or argmax.",
    "union": "As the simplest rule for two vocabularies; TLI keeps at least as many drafts.",
    "tli": "For two vocabularies that share most of what is drafted.",
    "slem": "For two vocabularies that share little and read each other's text, if psi shall not "
    "be computed; it accepts p · psi in place of min(p, psi).",
    "slrs": "For two vocabularies that share little and read each other's text, if psi, the "
    "drafter's law over all spellings of a token, can be afforded.",
    "block": "For a chain of drafts in the target's vocabulary: it keeps at least as many of them "
    "as standard does, in expectation.",
    "greedy-block": "If you stop after one iteration: it keeps the most there, and pays later.",
    "block-slrs": "Where SLRS would be taken, and drafts may be accepted jointly.",
    "lazy-slrs": "Where SLRS would be taken: it accepts the same, by bounds of psi in its place.",
    "path-slrs": "For two vocabularies by text, if coins shall be tossed and psi not computed; it "
    "accepts as much as SLRS, or less.",
    "recursive-rejection": "For several drafts of one position: the default.",
    "matching": "For several drafts of one position, if the sampler draws from p anyway and looks "
    "whether that was drafted.",
    "k-seq": "For several drafts of one position that are drawn with replacement, each tried "
    "against the same p and q.",
    "top-drafts": "For several drafts of one position, if you choose how to draft: the likeliest "
    "tokens, and one draw outside of them.",
    "spechub": "As top-drafts, for two drafts of one position.",
    "optimal": "For several drafts of one position over a small vocabulary: a maximum flow.",
    "topdown": "For a tree of drafts; it reads nothing below a refused sibling.",
    "traversal": "For a tree of drafts, with siblings drawn with replacement: it accepts every "
    "prefix at least as often as topdown does.",
    "ngrams": "For several drafts of one position that are certain, such as continuations found "
    "in the context.",
    "companion": "If a third model says how many drafts the target shall verify, before each "
    "draft is drawn.",
    "companion-rejecting": "If a third model judges drafts that were drawn: what it declines "
    "counts as rejected.",
    "companion-published": "Never for sampling: it is lossy there.",
}
