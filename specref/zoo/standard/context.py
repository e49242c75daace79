"""Mutants that verify or continue in a context other than the emitted one, or miscount its tokens.

Those of length decide how many tokens count by looking at the tokens: dropped drafts, EOS.
"""

from fractions import Fraction
from itertools import takewhile

from specref.algorithms import standard
from specref.distributions import Probabilities, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Position, Verification, acceptance, speculative
from specref.zoo.standard.draft import SHARP


def lagging(model: Model) -> Model:
    """The model without its latest token."""
    return Model(model.vocabulary, lambda context: model.next_token(context[:-1]))


def sharpened(model: Model) -> Model:
    """The model at temperature 1/2."""

    def next_token(context: Tokens) -> Probabilities:
        return with_temperature(model.next_token(context), SHARP)

    return Model(model.vocabulary, next_token)


def never_stop(v: Verification) -> Tokens:
    """Replace rejected drafts one by one, and go on testing the later ones."""
    pairs = enumerate(v.first.to(v.n).before)
    tokens = tuple(token if v.accepts(i) else v.recovered(i) for i, token in pairs)
    return v.until_eos((*tokens, v.bonus_token()))


def not_rolled_back(v: Verification) -> Tokens:
    """The block, and the next token in a context that still holds the rejected drafts."""
    accepted = v.prefix()
    block = v.block(accepted)
    if accepted == v.n or v.ends(block):
        return block
    p = v.first.target.next_token((*v.first.context, *v.first.last.before, block[-1]))
    return (*block, v.first.chance.draw(p, "next"))


def with_rejected(v: Verification) -> Tokens:
    """The accepted drafts, the rejected one, and the token that should replace it."""
    accepted = v.prefix()
    if accepted == v.n:
        return v.block(accepted)
    return v.until_eos((*v.first.to(accepted + 1).before, v.recovered(accepted)))


P_MIN = Fraction(1, 4)
NO_EOS = frozenset({"m", "c", "wide", "deep"})


def without_eos(model: Model) -> Model:
    """The model with an EOS like any other token."""
    return Model(Vocabulary(model.vocabulary.tokens), model.next_token)


def ends_text(at: Position) -> bool:
    """Whether the draft is EOS."""
    return at.target.vocabulary.ends((at.token,))


def bonus_after_eos(v: Verification) -> Tokens:
    """Append the bonus token even if the last draft was EOS."""
    accepted = v.prefix()
    return v.block(accepted) if accepted < v.n else (*v.first.last.before, v.bonus_token())


def second_thought_at_eos(v: Verification) -> Tokens:
    """Replace an accepted EOS by a fresh draw from p."""
    accepted = v.prefix()
    at = v.first.to(accepted - 1)
    if accepted == v.n and accepted and ends_text(at):
        return (*at.before, at.chance.draw(at.p, "again"))
    return v.block(accepted)


ENTRIES = (
    Entry(
        "target-row-off-by-one",
        "context",
        formula="p_i read as p(. | context, x_0 … x_(i-2)): the target lags one token behind",
        symptom="The first token of a text is exact, all later ones ignore their neighbour.",
        hint="Update processors, masks and penalties with each token before the next row.",
        step=lambda target, *others: standard.step(lagging(target), *others),
        cites=("ml-explore/mlx-lm#1175",),
        blind=frozenset({"m"}),
        note="The rows of m are all alike.",
    ),
    Entry(
        "target-temperature-missing",
        "context",
        formula="p read as norm(p^2): the verifier has another temperature than the request",
        symptom="Right only at one temperature; text too sharp or too flat elsewhere.",
        hint="Apply the request's sampling parameters to every verified row and the bonus row.",
        step=lambda target, *others: standard.step(sharpened(target), *others),
        cites=(
            "ohdearquant/lattice#388",
            "vllm-project/vllm-ascend#6685",
            "vllm-project/vllm#10198",
        ),
    ),
    Entry(
        "no-stop",
        "context",
        formula="a rejected draft is replaced; later drafts are tested on rows that still hold it",
        symptom="Blocks always have n + 1 tokens; those after a rejection do not fit it.",
        hint="Return at the first rejection.",
        step=speculative(verify=never_stop),
        blind=frozenset({"m"}),
        note="The rows of m are all alike, so every token is exact given those before it.",
    ),
    Entry(
        "target-cache-not-rolled-back",
        "context",
        formula="after a rejection the next row is p(. | context, all drafts, recovered token)",
        symptom="Exact up to the recovered token; then the text continues something not shown.",
        hint="Trim the target's cache, recurrent state included, to the number of accepted "
        "tokens.",
        step=speculative(verify=not_rolled_back),
        cites=(
            "ml-explore/mlx-lm#1109",
            "ml-explore/mlx-lm#846",
            "vllm-project/vllm#39273",
            "vllm-project/vllm#40738",
        ),
        blind=frozenset({"m", "c"}),
        note="The rows of c depend on the latest token only, which is the right one.",
    ),
    Entry(
        "rejected-draft-kept",
        "context",
        formula="the block holds x_0 … x_i and the recovered token, although x_i was rejected",
        symptom="Rejected tokens appear in the text, followed by their replacement.",
        hint="Cut the output at the number of accepted tokens before the recovered token is "
        "appended.",
        step=speculative(verify=with_rejected),
        cites=("lucidrains/speculative-decoding#3",),
    ),
    Entry(
        "drop-low-probability-draft",
        "length",
        formula="drafts from the first with q(x) < 1/4 on are discarded, bonus token ~ p",
        symptom="Tokens that the draft model finds unlikely come out too rarely.",
        hint="Keep the token and stop after it, or filter q before the draw.",
        step=speculative(
            submit=lambda drafts: list(takewhile(lambda x: x.q[x.token] >= P_MIN, drafts))
        ),
        note="Kept tokens are no longer distributed as q.",
    ),
    Entry(
        "eos-ignored",
        "length",
        formula="EOS is drafted, accepted and followed like any token",
        symptom="Text goes on after its end.",
        hint="Cut the drafts and the block at the first EOS.",
        step=lambda target, drafter, *others: standard.step(
            without_eos(target), without_eos(drafter), *others
        ),
        cites=("LostRuins/koboldcpp#1276", "openvinotoolkit/openvino.genai#1951"),
        blind=NO_EOS,
        note="Needs a vocabulary with EOS.",
    ),
    Entry(
        "bonus-after-eos",
        "length",
        formula="bonus token ~ p_n even if x_(n-1) is an accepted EOS",
        symptom="One stray token after the end of a text.",
        hint="Return without a bonus token when the last accepted draft is EOS.",
        step=speculative(verify=bonus_after_eos),
        cites=("openvinotoolkit/openvino.genai#1951",),
        blind=NO_EOS,
        note="Needs a vocabulary with EOS.",
    ),
    Entry(
        "eos-resampled",
        "length",
        formula="an accepted EOS is replaced by a fresh draw from its row of p",
        symptom="Texts end too rarely.",
        hint="Emit an accepted EOS as it is.",
        step=speculative(verify=second_thought_at_eos),
        cites=("huggingface/transformers#28508",),
        blind=NO_EOS,
        note="Needs a vocabulary with EOS.",
    ),
    Entry(
        "draft-eos-unverified",
        "length",
        formula="a drafted EOS is accepted without a test",
        symptom="Texts end as often as the draft model wants.",
        hint="Verify EOS like any other draft before finishing the sequence.",
        step=speculative(accept=lambda at: 1 if ends_text(at) else acceptance(at)),
        cites=("openvinotoolkit/openvino.genai#3293",),
        blind=NO_EOS,
        note="Needs a vocabulary with EOS.",
    ),
)
