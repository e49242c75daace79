"""The flags of a case: every flag that holds is listed, and no other; and a note on each.

A note says the mechanism, what goes wrong without it, and where it did.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from specref.algorithms.text.push_forward import conditional_psi
from specref.algorithms.union import read
from specref.contrib.vectors.deciding import Outcome, Replay, inner_edges
from specref.contrib.vectors.groups import Row, StepCase, VerifyCase
from specref.distributions import relabel
from specref.models import Model
from specref.rule import Rule
from specref.rules import RULES
from specref.vocabulary import Tokens, intersection

SMALLEST_NORMAL = Fraction(1, 2**126)
NEXT = Fraction(1, 2**53)


class Place(NamedTuple):
    """One draft: the laws there, and how likely a prefix is that ends before it (jointly: A_i)."""

    p: Row
    q: Row
    draft: int
    survival: Fraction


class Facts(NamedTuple):
    """A case, its outcome, and its drafts."""

    case: VerifyCase
    outcome: Outcome
    places: tuple[Place, ...]

    @property
    def final(self) -> Fraction:
        return Fraction(self.case.coins.final)


Predicate: TypeAlias = Callable[[Facts], bool]


def places(case: VerifyCase) -> tuple[Place, ...]:
    """The drafts of a case, up to the first that has no probability."""
    found: list[Place] = []
    survival, jointly = Fraction(1), RULES[case.rule].coins == "jointly"
    for p, q, draft in zip(case.p, case.laws, case.drafted, strict=False):
        found.append(Place(p, q, draft, survival if jointly else Fraction(1)))
        survival = min(Fraction(1), survival * p[draft] / q[draft])
    return tuple(found)


def verify_flags(case: VerifyCase, outcome: Outcome) -> list[str]:
    """The flags of a verification, in the order of `VERIFICATION_FLAGS`."""
    facts = Facts(case, outcome, places(case))
    return [name for name, holds in VERIFICATION_FLAGS.items() if holds(facts)]


def somewhere(holds: Callable[[Place], bool]) -> Predicate:
    """True if it holds at some draft."""
    return lambda facts: any(map(holds, facts.places))


def disjoint(p: Row, q: Row) -> bool:
    """Whether no token has probability in both."""
    return not any(map(min, p, q))


def undrafted(p: Row, q: Row) -> bool:
    """Whether some token of the target is never drafted."""
    return any(a > 0 == b for a, b in zip(p, q, strict=True))


def _point_mass(facts: Facts) -> bool:
    laws = facts.case.p[: len(facts.places) + 1] + (facts.case.q or ())[: len(facts.places)]
    return any(1 in law for law in laws)


def _final_next_to(facts: Facts) -> bool:
    edges = inner_edges(facts.outcome) | {Fraction(1)}
    return any(0 < abs(facts.final - edge) <= NEXT for edge in edges)


def _later_acceptance(facts: Facts) -> bool:
    coins, kept = facts.case.coins.accept, facts.outcome.accepted
    later = zip(facts.places[kept + 1 :], coins[kept + 1 :], strict=False)
    token = RULES[facts.case.rule].coins == "token by token"
    return token and any(Fraction(u) * at.q[at.draft] < at.p[at.draft] for at, u in later)


def _overruled(facts: Facts) -> bool:
    """Token verification would have stopped earlier."""
    coins = facts.case.coins.accept[: facts.outcome.accepted]
    kept = zip(facts.places, coins, strict=False)
    refused = (Fraction(u) * at.q[at.draft] >= at.p[at.draft] for at, u in kept)
    return RULES[facts.case.rule].coins == "jointly" and any(refused)


VERIFICATION_FLAGS: Mapping[str, Predicate] = MappingProxyType(
    {
        "BonusToken": lambda facts: facts.outcome.last == "bonus",
        "ResidualToken": lambda facts: facts.outcome.last == "residual",
        "DisjointSupport": somewhere(lambda at: disjoint(at.p, at.q)),
        "ZeroDraftMass": somewhere(lambda at: undrafted(at.p, at.q)),
        "ZeroTargetMass": somewhere(lambda at: at.p[at.draft] == 0),
        "EqualDistributions": lambda facts: (
            bool(facts.places) and all(at.p == at.q for at in facts.places)
        ),
        "PointMass": _point_mass,
        "TieAtOne": somewhere(lambda at: at.p[at.draft] == at.q[at.draft] and at.p != at.q),
        "RatioAboveOne": somewhere(lambda at: at.p[at.draft] > at.q[at.draft]),
        "SubnormalRatio": somewhere(
            lambda at: 0 < at.p[at.draft] / at.q[at.draft] < SMALLEST_NORMAL
        ),
        "ResidualZero": somewhere(
            lambda at: all(at.survival * a <= b for a, b in zip(at.p, at.q, strict=True))
        ),
        "OneHotDraft": lambda facts: facts.case.q is None,
        "TruncatedDraft": lambda facts: 0 < len(facts.places) < len(facts.case.drafts),
        "NoDraft": lambda facts: not facts.places,
        "CoinZero": lambda facts: any(a.coin == 0 for a in facts.outcome.asked),
        "CoinAtThreshold": lambda facts: any(a.coin == a.probability for a in facts.outcome.asked),
        "CoinNextToThreshold": lambda facts: any(
            0 < abs(a.coin - a.probability) <= NEXT for a in facts.outcome.asked
        ),
        "FinalZero": lambda facts: facts.final == 0,
        "FinalAtEdge": lambda facts: facts.final in inner_edges(facts.outcome),
        "FinalNextToEdge": _final_next_to,
        "NoiseZero": lambda facts: 0 in facts.case.coins.race,
        "LaterAcceptance": _later_acceptance,
        "FailureOverruled": _overruled,
    }
)


@dataclass(frozen=True)
class Iteration:
    """A case, its exact law and its replays."""

    case: StepCase
    blocks: Sequence[Tokens]
    replays: Sequence[Replay]

    @property
    def rule(self) -> Rule:
        return RULES[self.case.algorithm]

    @cached_property
    def target(self) -> Model:
        return self.case.target.model()

    @cached_property
    def drafter(self) -> Model:
        return self.case.drafter.model()

    @cached_property
    def shared(self) -> dict[int, int]:
        """The tokens that both have: {drafter id: target id}."""
        return intersection(self.target.vocabulary, self.drafter.vocabulary)

    @property
    def readable(self) -> bool:
        """Whether the drafter can read the context, token by token."""
        return read(self.target, self.drafter, self.case.context) is not None

    @property
    def p(self) -> Row:
        """The target's law after the context."""
        return tuple(self.target.next_token(self.case.context))

    @cached_property
    def q(self) -> Row | None:
        """The law of the first drafted target token; None if there is none."""
        if self.case.lookahead == 0 or not self.readable:
            return None
        if self.rule.by_text:
            text = self.target.vocabulary.decode(self.case.context)
            encoded = self.drafter.vocabulary.encode(text)
            depth = self.case.lookahead
            return tuple(conditional_psi(self.target.vocabulary, self.drafter, encoded, depth)[()])
        seen = read(self.target, self.drafter, self.case.context)
        q = self.drafter.next_token(seen or ())
        moved = relabel(q, self.shared, len(self.target.vocabulary))
        total = moved.sum() if self.rule.restricts else 1
        return tuple(moved / total) if total else None

    def any_site(self, name: str) -> bool:
        """Whether some replay asks a site of that name."""
        return any(step.site.startswith(name) for one in self.replays for step in one.steps)

    def retokenised(self, replay: Replay) -> bool:
        """Whether the target reads the drafted text as other pieces than were drafted."""
        drafted = [step.choice for step in replay.steps if step.site.startswith("draft")]
        text = self.drafter.vocabulary.decode(drafted)
        pieces = [self.drafter.vocabulary.tokens[token] for token in drafted]
        tokens = self.target.vocabulary.encode(text)
        return pieces != [self.target.vocabulary.tokens[token] for token in tokens]


def step_flags(iteration: Iteration) -> list[str]:
    """The flags of an iteration, in the order of `ITERATION_FLAGS`."""
    return [name for name, holds in ITERATION_FLAGS.items() if holds(iteration)]


def _law(holds: Callable[[Row, Row], bool]) -> Callable[[Iteration], bool]:
    return lambda one: one.q is not None and holds(one.p, one.q)


def _accepted_eos(one: Iteration) -> bool:
    ended = (r for r in one.replays if one.target.vocabulary.ends(r.block))
    return any(replay.steps[-1].site.startswith("accept") for replay in ended)


def _refused(one: Iteration) -> bool:
    ends = (r for r in one.replays if r.steps[-1].site == "residual")
    choices = ([s.choice for s in r.steps if s.site.startswith("accept")] for r in ends)
    return any(all(accepts) for accepts in choices)


def _nothing_shared(one: Iteration) -> bool:
    masses = (sum(row[token] for token in one.shared) for row in one.case.drafter.rows.values())
    return bool(one.shared) and not all(masses)


ITERATION_FLAGS: Mapping[str, Callable[[Iteration], bool]] = MappingProxyType(
    {
        "BonusToken": lambda one: one.any_site("bonus"),
        "ResidualToken": lambda one: one.any_site("residual"),
        "DisjointSupport": _law(disjoint),
        "ZeroDraftMass": _law(undrafted),
        "EqualDistributions": _law(lambda p, q: p == q),
        "PointMass": _law(lambda p, q: 1 in p or 1 in q),
        "NoDraft": lambda one: not one.any_site("draft"),
        "EndOfText": lambda one: any(map(one.target.vocabulary.ends, one.blocks)),
        "AcceptedEos": _accepted_eos,
        "IntersectionEmpty": lambda one: not one.shared,
        "DrafterOnlyToken": lambda one: len(one.shared) < len(one.drafter.vocabulary),
        "TargetOnlyToken": lambda one: len(one.shared) < len(one.target.vocabulary),
        "ReorderedIds": lambda one: any(here != there for here, there in one.shared.items()),
        "NothingShared": _nothing_shared,
        "UnreadableContext": lambda one: not one.readable,
        "Retokenised": lambda one: one.rule.by_text and any(map(one.retokenised, one.replays)),
        "RefusedWithoutCoin": _refused,
    }
)


class Note(NamedTuple):
    """A flag explained; links are ``owner/repo#number``."""

    mechanism: str
    effect: str
    cites: tuple[str, ...] = ()

    @property
    def links(self) -> list[str]:
        pairs = (cite.split("#") for cite in self.cites)
        return [f"https://github.com/{name}/issues/{number}" for name, number in pairs]


NOTES: Mapping[str, Note] = MappingProxyType(
    {
        "BonusToken": Note(
            "Every draft is accepted, and one more token is drawn from the target's last row.",
            "From another row, the drafter or a residual, the joint law is wrong and the first "
            "token right.",
            ("huggingface/transformers#28166", "SafeAILab/EAGLE#47"),
        ),
        "ResidualToken": Note(
            "A draft is rejected, and replaced by a draw from norm((p - q)+) of its own row.",
            "Drawn from p, tokens that q likes come too often.",
            ("huggingface/transformers#28508", "SafeAILab/EAGLE#20"),
        ),
        "DisjointSupport": Note(
            "p and q share no token: acceptance has probability 0, and the residual is p.",
            "A ratio with a floor, or a test with <=, emits what the target never says.",
        ),
        "ZeroDraftMass": Note(
            "q is 0 where p is not: such a token is never drafted, and only a residual emits it.",
            "A residual on the tokens of the drafter alone loses it.",
        ),
        "ZeroTargetMass": Note(
            "p of a draft is 0: it is rejected, whatever the coin.",
            "u <= p / q accepts it at u = 0.",
            ("sgl-project/sglang#35771",),
        ),
        "EqualDistributions": Note(
            "p = q: every draft is accepted, and no residual exists.",
            "0 / 0 where the residual is computed all the same.",
            ("jaymody/speculative-sampling#5",),
        ),
        "PointMass": Note(
            "A law is certain of one token.",
            "Logarithms of 0, and inverse CDFs that stop at a token of weight 0.",
        ),
        "TieAtOne": Note(
            "p = q at the draft though not everywhere: the ratio is 1, and no coin rejects.",
            "A rejection with u in (0, 1], or by p < q turned round.",
        ),
        "RatioAboveOne": Note(
            "p > q at the draft: accepted, whatever the coin.",
            "An inverted ratio rejects; an uncapped product of ratios carries the excess on.",
        ),
        "SubnormalRatio": Note(
            "0 < p / q < 2^-126: smaller than the least normal float32, and not 0.",
            "Flushed to 0 a rare token becomes impossible; in half precision 0 / 0 accepts it.",
            ("lablup/mlxcel#992",),
        ),
        "ResidualZero": Note(
            "Nothing is left of p - q (block: of P p - q): no coin may stop there.",
            "A coin of 0 tested with <=, or rounding, asks for a token of an empty law.",
            ("jaymody/speculative-sampling#5",),
        ),
        "OneHotDraft": Note(
            "There is no q: every draft is certain, so that it is accepted with p.",
            "A missing q that is read as 1 for the test and as 0 for the residual.",
        ),
        "TruncatedDraft": Note(
            "The row has fewer drafts than places: -1 after the last.",
            "-1 read as the last token, or a bonus token from the last row of the batch.",
        ),
        "NoDraft": Note(
            "Nothing is drafted: one token of the target's first row.",
            "An empty maximum, or a residual of a row that is not there.",
        ),
        "CoinZero": Note("A coin is 0.", "u <= p / q, or log u.", ("sgl-project/sglang#35771",)),
        "CoinAtThreshold": Note(
            "A coin is exactly the probability it is compared with: that is no acceptance.",
            "With <= it is; one coin in 2^53 is decided otherwise, which nobody minds unless p "
            "is 0.",
        ),
        "CoinNextToThreshold": Note(
            "A coin is one double away from the probability it is compared with.",
            "Coins or ratios in less precision than float64 are rounded to the other side.",
        ),
        "FinalZero": Note(
            "The last uniform is 0: the first token of positive weight.",
            "A search for cumulative >= u stops at a leading token of weight 0.",
            ("Lightning-AI/litgpt#2323",),
        ),
        "FinalAtEdge": Note(
            "The last uniform is exactly a cumulative probability: the next token.",
            "A search for cumulative >= u takes the one before.",
        ),
        "FinalNextToEdge": Note(
            "The last uniform is one double away from a cumulative probability, or from 1.",
            "A sum that rounds below u runs off the end of the vocabulary.",
        ),
        "NoiseZero": Note(
            "In a race, some noise is 0 where the weight is 0.",
            "0 / 0 is NaN, and NaN comes first.",
            ("NVIDIA/FasterTransformer#183",),
        ),
        "LaterAcceptance": Note(
            "After the first rejected draft, a later coin would accept its own.",
            "Counting acceptances in place of the accepted prefix.",
            ("vllm-project/vllm#2658",),
        ),
        "FailureOverruled": Note(
            "Token verification would have rejected a draft that block verification keeps.",
            "A loop that stops at the first failure, which is lossy with block verification's "
            "probabilities.",
            ("vllm-project/vllm-ascend#11985",),
        ),
        "EndOfText": Note(
            "A block can end with EOS.",
            "Tokens after the end, or an end that comes too rarely.",
            ("openvinotoolkit/openvino.genai#1951",),
        ),
        "AcceptedEos": Note(
            "A drafted EOS is accepted: it ends the block, without a bonus token.",
            "A bonus token after the end, or an EOS that is drawn again.",
            ("LostRuins/koboldcpp#1276", "huggingface/transformers#28508"),
        ),
        "IntersectionEmpty": Note(
            "The vocabularies share no token.",
            "TLI has nothing to draft, and 0 / 0 where it drafts all the same.",
        ),
        "DrafterOnlyToken": Note(
            "The drafter has a token that the target lacks.",
            "Its id is taken for one of the target's.",
            ("ggml-org/llama.cpp#17480",),
        ),
        "TargetOnlyToken": Note(
            "The target has a token that the drafter lacks.",
            "A target that is cut down to the shared tokens is another law.",
        ),
        "ReorderedIds": Note(
            "A shared token has another id in the drafter.",
            "Drafts are mapped and q is not, or the other way round.",
            ("vllm-project/vllm-ascend#16166",),
        ),
        "NothingShared": Note(
            "Somewhere the drafter says none of the shared tokens.",
            "0 / 0 where q is renormalised over them.",
        ),
        "UnreadableContext": Note(
            "The drafter can neither name nor spell a token of the context.",
            "Read as id 0 it costs acceptance; as an error, the request.",
        ),
        "Retokenised": Note(
            "The target reads a drafted text as other pieces than were drafted.",
            "The law of a drafted target token is that of the text, not a product of q.",
        ),
        "RefusedWithoutCoin": Note(
            "A residual token though no coin refused: what came next is no target token, or the "
            "drafted text has ended where longer ones might go on.",
            "A bonus token in its place is lossy.",
        ),
    }
)
