"""Known defects of the implementations: the failures that are expected.

Seen with Transformers 5.17.0 and 5.23.0; the tests named as evidence fail if a defect is fixed.
"""

from specref.adapters.implementation import Deviation

PRUNING = ("huggingface/transformers#36695",)
WARPERS = ("huggingface/transformers#40976",)
TESTS = "proofs_tests/contrib/engines/test_transformers_generate.py"
LOSSY = f"{TESTS}::test_tli_as_shipped_is_lossy"
COINS = "proofs_tests/contrib/engines/test_registry.py::test_edge_coins"

ORDER = (
    "The draft model's head is pruned in the order in which its tokenizer lists its vocabulary, "
    "and its logits are read as if that were the order of ids: drafts are verified with a "
    "permuted q."
)
NAN = "Where that leaves no residual, torch.multinomial raises."
CHANGES = (
    "A fast tokenizer lists its vocabulary in another order each time, so the same seed gives "
    "other texts when the tokenizers are made anew."
)
CONTEXT = (
    "Drafts are stored as indices of the pruned head, and fed back to the draft model as token "
    "ids: it reads one wrong token after each block that has an accepted draft."
)
WARPED_TWICE = (
    "The assistant gets the target's logits processors and builds them again from the copied "
    "configuration: at temperature T it drafts at T squared."
)
ZERO = (
    "A draft is accepted if r <= p / q: one with p = 0 is accepted when float32 torch.rand gives "
    "0, once in 2^24 times."
)
EMPTY = "A rejection by rounding alone leaves the residual 0 / 0, and torch.multinomial raises."

SAMPLER = (
    Deviation("boundary/zero-coin", ZERO, True, evidence=COINS),
    Deviation("boundary/empty-residual", EMPTY, False, evidence=COINS),
)
WARM = (
    Deviation("acceptance/lost-drafts", WARPED_TWICE, False, WARPERS, f"{TESTS}::test_warpers"),
    Deviation("acceptance/self-draft", WARPED_TWICE, False, WARPERS, f"{TESTS}::test_warpers"),
)
# A text of one token has no drafts: only that stratum passes.
TEXTS = (
    "prompts", "prompts-of-1100", "prompts-related", "long-prompts", "budget-above-500", "easy",
    "vocabulary-hundreds", "vocabulary-thousands", "last-id", "laws-flat", "laws-peaked",
    "laws-zeros", "ending",
)  # fmt: skip
TLI_TEXT = (
    Deviation(
        "end-to-end/texts",
        f"{ORDER} One order in 24 is that of the ids, and passes.",
        True,
        PRUNING,
        LOSSY,
    ),
)
TLI = (
    Deviation("smoke/calls-deterministic", CHANGES, False, PRUNING, f"{TESTS}::test_order"),
    Deviation("end-to-end/markov", ORDER, True, PRUNING, LOSSY),
    Deviation("end-to-end/wide", ORDER, True, PRUNING, LOSSY),
    Deviation("end-to-end/deep", f"{ORDER} {NAN}", True, PRUNING, LOSSY),
    Deviation("end-to-end/eos", ORDER, True, PRUNING, LOSSY),
    *(Deviation(f"strata/text-{name}", f"{ORDER} {NAN}", True, PRUNING, LOSSY) for name in TEXTS),
    Deviation("acceptance/first-drafts", ORDER, True, PRUNING, f"{TESTS}::test_inflated"),
    Deviation("acceptance/self-draft", CONTEXT, False, PRUNING, f"{TESTS}::test_relabelled"),
)
OPENVINO_TESTS = "proofs_tests/contrib/engines/test_openvino_genai.py"
OPENVINO = (
    Deviation(
        "end-to-end/texts",
        "A draft x is accepted if r <= q(x) / p(t), where t is another draw from the target; a "
        "rejected one is replaced from the row after it; and both models draw the same numbers.",
        True,
        evidence=f"{OPENVINO_TESTS}::test_the_first_drafts_follow_the_published_code",
    ),
)
MLX_PENALTY = tuple(
    Deviation(
        id_,
        "In non-speculative decoding logits processors see the whole prompt, in speculation its "
        "last token alone, so that penalties, which are made of the text, differ.",
        True,
        ("ml-explore/mlx-lm#1773",),
        "proofs_tests/contrib/engines/test_mlx_lm.py::test_processors_see_the_prompt_in_plain_mode_alone",
    )
    for id_ in ("end-to-end/texts", "end-to-end/texts-of-one-token")
)


SAMPLERS = "proofs_tests/contrib/engines/test_samplers.py"
LAST_UNTESTED = (
    "The ratio that is compared with the first random number leaves out the last draft; each "
    "later one, and the resampling, a draft that was accepted."
)
AT_THE_DRAFT = "q is subtracted from p at the drafted token alone; a bonus token is an argmax."
NEXT_ROW = (
    "Draft k is compared with the target's row after it, k + 1; of the prompt, only the last "
    "token is ever read."
)
NO_MASS = "Where q = 0 the residual leaves out p; torch.multinomial raises if nothing is left."
DROPPED = "The token that is drawn after the prompt is fed to the models, and not returned."
SECOND_DRAW = (
    "A draft is accepted if a draw of the target is the same; else the token is another draw, "
    "which may be the draft again."
)
UNCAPPED = (
    "The ratio of all drafts that the random number is compared with is not capped at 1 on the "
    "way, as the paper caps it: a draft that the target likes more pays for a later one."
)
ARGMAX = (
    "Without jit_speculate and cache hits a draft is accepted if it is the target's argmax; the "
    "next token is drawn from p, not from what is left of it."
)
WRITTEN_FIRST = (
    "The last token is written behind the accepted path before the path is moved there: a draft "
    "that stands in that place is replaced by it."
)
BY_DESIGN = "Typical acceptance accepts each draft whose probability is above a threshold."


def _lossy(
    test: str, reason: str, *checks: str, cites: tuple[str, ...] = ()
) -> tuple[Deviation, ...]:
    evidence = f"{SAMPLERS}::{test}"
    return tuple(Deviation(one, reason, True, cites, evidence) for one in checks)


STEPS = (
    "many-drafts", "long-drafts", "contexts", "vocabulary-hundreds", "laws-flat", "laws-peaked",
    "laws-rare", "laws-zeros", "ending",
)  # fmt: skip
MORE_STEPS = ("contexts-of-1100", "contexts-related", "vocabulary-thousands", "last-id")
CAPPED = (
    *_lossy(
        "test_capped", f"{LAST_UNTESTED} {NO_MASS}", "joint/wide", "joint/deep", "joint/eos",
        "joint/probed", *(f"strata/step-{one}" for one in STEPS),
    ),
    *(
        Deviation(one, NO_MASS, False, evidence=f"{SAMPLERS}::test_capped_raises")
        for one in (
            "independence/rows-wide", "independence/rows-deep", "strata/step-one-draft",
            *(f"strata/step-{one}" for one in MORE_STEPS),
            "joint/probed-ending", *(f"joint/probed-{n}-drafts" for n in (5, 7, 8)),
            "iterations/wide", "iterations/deep", "iterations/eos",
        )
    ),
)  # fmt: skip
ROTALABS = _lossy(
    "test_rotalabs", AT_THE_DRAFT, *(
        f"joint/{one}"
        for one in ("wide", "deep", "eos", "batch-of-one", "beside-idle", "one-hot", "probed")
    ),
)  # fmt: skip
LOOPS = tuple(f"end-to-end/{one}" for one in ("markov", "wide", "deep", "eos"))
EVERY_TEXT = (*LOOPS, "strata/text-budget-of-1", *(f"strata/text-{one}" for one in TEXTS))
CSAQ = _lossy("test_csaq", NEXT_ROW, *EVERY_TEXT)
LITGPT = _lossy("test_litgpt", DROPPED, *EVERY_TEXT, cites=("Lightning-AI/litgpt#2307",))
ROMSTO = _lossy(
    "test_romsto", SECOND_DRAW, *LOOPS, "end-to-end/probed", "end-to-end/probed-ending"
)
NUCLEUS = _lossy("test_medusa", SECOND_DRAW, "joint/siblings", "joint/likeliest", "joint/probed")
TYPICAL = _lossy(
    "test_medusa", BY_DESIGN, "joint/siblings", "joint/ending", "joint/likeliest", "joint/probed"
)
HSD = _lossy(
    "test_hsd", UNCAPPED, "joint/wide", "joint/deep", "joint/probed",
    "acceptance/bound-wide", "acceptance/bound-deep", "strata/many-drafts", "strata/long-drafts",
    "iterations/wide", "iterations/deep",
)  # fmt: skip
SSD = (Deviation("boundary/zero-coin", ZERO, True, evidence=f"{SAMPLERS}::test_ssd"),)
SSD_DEFAULTS = _lossy(
    "test_ssd", ARGMAX, *(
        f"joint/{one}"
        for one in (
            "wide", "deep", "eos", "batch-of-one", "one-hot", "probed", "probed-5-drafts",
            "probed-7-drafts", "probed-8-drafts", "probed-33-drafts", "probed-vocabulary",
            "probed-vocabulary-32k",
        )
    ), *(
        f"strata/{one}"
        for one in (
            "first-call", "one-draft", "two-and-three-drafts", "many-drafts", "long-drafts",
            "large-logits", "batches-to-16",
            "batches-to-512", "batches-to-8192", "vocabulary-hundreds", "vocabulary-thousands",
            "no-laws", "laws-flat", "laws-peaked", "laws-rare", "laws-zeros", "laws-mixed",
            "drafter-wrong", "int32-ids", "strided-arrays", "transposed-arrays",
            "arrays-filled-anew", "answers-kept", "late-calls", "pair-1", "pair-2", "pair-3",
        )
    ), "iterations/wide", "iterations/deep", "iterations/eos", cites=("tanishqkumar/ssd#24",),
)  # fmt: skip
SEQUOIA = _lossy(
    "test_sequoia", WRITTEN_FIRST, "joint/wide", "joint/deep", "joint/eos",
    *(f"strata/step-{one}" for one in ("one-draft", *STEPS, *MORE_STEPS)),
    *(f"iterations/{one}" for one in ("wide", "deep", "eos")),
)  # fmt: skip
