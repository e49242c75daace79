"""Mutants that decide how many tokens count by looking at the tokens: dropped drafts, EOS."""

from fractions import Fraction
from itertools import takewhile

from specref.algorithms import standard
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Position, Verification, acceptance, speculative

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
