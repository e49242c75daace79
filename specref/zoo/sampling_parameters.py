"""Mutants whose target has other sampling parameters than plain sampling gives it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, top_k_top_p, with_temperature
from specref.models import Model, hashed_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.fixtures import ExactFixture, by_name
from specref.zoo.parts.standard import Position, Verification, ratio, residual_or_p, speculative

Row: TypeAlias = Callable[[Position], Probabilities]


@dataclass(frozen=True)
class Parameters:
    """Sampling parameters.

    * `penalty`: Tokens of the text have their probability multiplied by it.
    * `mass`: Of top-p.
    * `chained`: Whether top-k renormalises before top-p.
    * `floor`: Of min-p: tokens below this share of the likeliest are dropped.
    """

    penalty: Fraction = Fraction(1, 2)
    temperature: Fraction = Fraction(1, 2)
    k: int = 3
    mass: Fraction = Fraction(4, 5)
    chained: bool = False
    floor: Fraction = Fraction(1, 8)

    def applied(self, row: Probabilities, text: Tokens) -> Probabilities:
        """The row that is sampled from after `text`."""
        factors = [self.penalty if token in text else 1 for token in range(len(row))]
        penalised = np.array([p * factor for p, factor in zip(row, factors, strict=True)])
        sharp = with_temperature(normalise(penalised), self.temperature)
        kept = top_k_top_p(sharp, self.k, self.mass, chained=self.chained)
        return normalise(np.where(kept >= self.floor * kept.max(), kept, kept * 0))


PARAMETERS = Parameters()
NEUTRAL = Parameters(Fraction(1), Fraction(1), 1000, Fraction(1), False, Fraction(0))


@lru_cache(maxsize=256)
def warped(model: Model, parameters: Parameters = PARAMETERS) -> Model:
    """The model that plain sampling draws from."""

    def next_token(context: Tokens) -> Probabilities:
        return parameters.applied(model.next_token(context), context)

    return Model(model.vocabulary, next_token)


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """Standard speculative decoding with both models warped: the clean rule of this stage.

    Parameters and returns as `standard.step`; the target is the one before the parameters.
    """
    return standard.step(warped(target), warped(drafter), context, lookahead, chance)


def with_parameters(target_has: Parameters, drafter_has: Parameters = PARAMETERS) -> Step:
    """Standard speculative decoding, each model with parameters of its own."""
    return lambda target, drafter, *others: standard.step(
        warped(target, target_has), warped(drafter, drafter_has), *others
    )


def history(at: Position) -> Tokens:
    """The text that a position continues."""
    return (*at.context, *at.before)


def right(at: Position) -> Probabilities:
    """The row that plain sampling would draw from."""
    return PARAMETERS.applied(at.p, history(at))


def with_rows(row: Row, recovered_from: Row | None = None, after: Row | None = None) -> Step:
    """Verification against a target row computed at each position.

    * `row`: Position (of the target without parameters) -> the row that drafts are tested with.
    * `recovered_from`: The row in the residual, if another.
    * `after`: The row of one more token after a recovered one.
    """
    tested = speculative(
        accept=lambda at: ratio(row(at)[at.token], at.qx),
        recover=lambda at: residual_or_p((recovered_from or row)(at), at.q),
        bonus=row,
        verify=lambda v: v.block(v.prefix()) if after is None else _continued(v, after),
    )
    return lambda target, drafter, *others: tested(target, warped(drafter), *others)


def _continued(v: Verification, after: Row) -> Tokens:
    accepted = v.prefix()
    block = v.block(accepted)
    if accepted == v.n or v.ends(block):
        return block
    at = replace(v.first, context=(*v.first.context, *block), drafts=v.first.drafts)
    return (*block, at.chance.draw(after(at), "next"))


def _warped(name: str, key: int, vocabulary: Vocabulary, context: Tokens) -> ExactFixture:
    target, drafter = (hashed_model(vocabulary, f"{name} {role} {key}", 9) for role in "pq")
    return ExactFixture(name, target, drafter, 2, context, plain=warped(target))


# The keys were found by search: every mutant of the stage shows on both fixtures.
WARPED_FIXTURES: Mapping[str, ExactFixture] = by_name(
    _warped("parameters", 294, Vocabulary("abcde"), (0,)),
    _warped("parameters, EOS", 434, Vocabulary(["a", "b", "c", "d", "$"], eos="$"), (1,)),
)


ONE = Fraction(1)


def with_rejected_penalised(at: Position) -> Probabilities:
    """The row after a block, by a penalty that has also seen the drafts that were rejected."""
    return PARAMETERS.applied(at.p, (*at.context, *at.last.before))


of_warped = partial(Entry, stage="operator", rule="warped")
ENTRIES = (
    of_warped(
        "sampling-parameters-ignored",
        formula="the target's own p instead of p with penalty, temperature, top-k, top-p, min-p",
        symptom="Text is as wild as at temperature 1, whatever the request says.",
        hint="Apply the request's sampling parameters to every verified row and the bonus row.",
        step=with_parameters(NEUTRAL),
        cites=("vllm-project/vllm#10198", "NVIDIA/TensorRT-LLM#17701"),
    ),
    of_warped(
        "target-temperature-twice",
        formula="norm(norm(p^2)^2) instead of norm(p^2)",
        symptom="Right at temperature 1; sharper than plain sampling below it.",
        hint="Divide the logits once: in the model's warpers or in the verifier.",
        step=with_parameters(replace(PARAMETERS, temperature=PARAMETERS.temperature**2)),
    ),
    of_warped(
        "filters-chained",
        formula="top-k, renormalise, top-p instead of top-k and top-p of one row",
        symptom="A few tokens at the edge of the nucleus are missing, by parts in a hundred.",
        hint="Let both filters judge the row that plain sampling gives them.",
        step=with_parameters(replace(PARAMETERS, chained=True)),
        cites=("ztxz16/fastllm#737", "ztxz16/fastllm#738"),
    ),
    of_warped(
        "min-p-ignored",
        formula="min-p is not applied to the target's rows",
        symptom="Tokens that plain sampling never emits.",
        hint="Refuse a request whose parameters the verifier does not implement.",
        step=with_parameters(replace(PARAMETERS, floor=0 * ONE)),
        cites=("NVIDIA/TensorRT-LLM#17701",),
    ),
    of_warped(
        "penalty-ignored",
        formula="the repetition penalty is not applied to the target's rows",
        symptom="Repetitions come back when speculation is switched on.",
        hint="Refuse a request whose parameters the verifier does not implement.",
        step=with_parameters(replace(PARAMETERS, penalty=ONE)),
        cites=("vllm-project/vllm#19482",),
    ),
    of_warped(
        "penalty-lags-one-token",
        formula="the penalty of row i has seen the text up to x_(i-2)",
        symptom="Immediate repetitions are not penalised.",
        hint="Update processors with each token before the next row.",
        step=with_rows(lambda at: PARAMETERS.applied(at.p, history(at)[:-1])),
        cites=("ml-explore/mlx-lm#1175",),
    ),
    of_warped(
        "penalty-frozen-in-block",
        formula="the penalty of every row has seen the context only",
        symptom="First token exact; repetitions inside a block are not penalised.",
        hint="Apply processors position by position, each with its own prefix.",
        step=with_rows(lambda at: PARAMETERS.applied(at.p, at.context)),
    ),
    of_warped(
        "penalty-counts-rejected",
        formula="after a rejection the penalty has also seen the drafts that were rejected",
        symptom="Exact up to the recovered token; then tokens that were never shown are rare.",
        hint="Roll processors back with the cache.",
        step=with_rows(right, after=with_rejected_penalised),
        cites=("openvinotoolkit/openvino.genai#4081",),
    ),
    of_warped(
        "filter-row-0-only",
        formula="the parameters act on row 0, rows 1 to n are the target's own",
        symptom="First token exact, later tokens unfiltered; masks are violated inside blocks.",
        hint="Apply masks and filters to every verified row and the bonus row.",
        step=with_rows(lambda at: at.p if at.i else right(at)),
        cites=("vllm-project/vllm#44297",),
    ),
    of_warped(
        "bonus-row-unfiltered",
        formula="the bonus token is drawn from the target's own p_n",
        symptom="Exact until every draft is accepted; then anything may follow.",
        hint="Apply masks and filters to every verified row and the bonus row.",
        step=with_rows(lambda at: at.p if at.i == len(at.drafts) else right(at)),
        cites=("vllm-project/vllm#44297",),
    ),
    of_warped(
        "residual-of-unfiltered-row",
        formula="tested with the filtered p, then residual of the target's own p and q",
        symptom="Acceptance is exact; recovered tokens are ones that the filter forbids.",
        hint="Subtract from the row that was tested with.",
        step=with_rows(right, recovered_from=lambda at: at.p),
    ),
)
CONTROLS = (
    of_warped(
        "drafter-warped-twice",
        formula="q with the parameters applied two times",
        symptom="Acceptance falls at low temperatures: a perfect draft model loses half its "
        "drafts.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's row "
        "matters.",
        step=lambda target, drafter, *others: standard.step(
            warped(target), warped(warped(drafter)), *others
        ),
        cites=("huggingface/transformers#40976",),
        lossless=True,
    ),
    of_warped(
        "drafter-unwarped",
        formula="q without the parameters",
        symptom="The draft model has another temperature and no filters.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's row "
        "matters.",
        step=with_parameters(PARAMETERS, NEUTRAL),
        cites=("NVIDIA/TensorRT-LLM#15775",),
        lossless=True,
    ),
    of_warped(
        "parameters-by-row",
        formula="the parameters applied position by position instead of to the model",
        symptom="A verifier with processors of its own next to those of plain sampling.",
        hint="Every row gets the same parameters and the right text.",
        step=with_rows(right),
        lossless=True,
    ),
)
