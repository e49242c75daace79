"""Judges `generate` by long texts of an order-1 Markov target, betting on every transition.

For such a target the next token depends on the last one alone, so one long text is many
samples of few laws, which suits slow samplers. `Chain` holds the target in tables, and is as
fast after a long text as after a short one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from specref.arrays import Floats, Ints
from specref.contracts.functions import Generate
from specref.contracts.sampling import giver
from specref.contracts.timeout import described
from specref.models import Model, as_float, hashed_model, iid_model, markov_model
from specref.statistics import Campaign, CampaignCase, CampaignReport
from specref.statistics.campaign.levels import ALPHA
from specref.tracebacks import traceback_lines
from specref.vocabulary import Vocabulary

_LETTERS = Vocabulary("abcde")
_START = ["1/5"] * 5

CHAIN = markov_model(
    _LETTERS,
    _START,
    [
        ["1/10", "3/10", "2/5", "1/5", 0],
        ["1/2", 0, "1/6", "1/6", "1/6"],
        ["1/12", "5/12", "1/6", "1/4", "1/12"],
        [0, "1/4", "1/4", "1/4", "1/4"],
        ["2/5", "1/10", "1/5", "1/10", "1/5"],
    ],
)
GUESS = markov_model(
    _LETTERS,
    _START,
    [
        ["2/5", "1/10", "1/5", "1/10", "1/5"],
        ["1/6", "1/6", "1/2", 0, "1/6"],
        ["5/12", "1/12", "1/4", "1/6", "1/12"],
        ["1/4", "1/4", 0, "1/4", "1/4"],
        ["1/10", "2/5", "3/10", "1/5", 0],
    ],
)

_HASHED = hashed_model(_LETTERS, "pairs")
PAIRS = Model(_LETTERS, lambda context: _HASHED.next_token(context[-2:]))
FLAT = iid_model(_LETTERS, ["1/5"] * 5)
PEAKED = iid_model(_LETTERS, ["3/5", "1/5", "1/10", "1/20", "1/20"])


TEXT = 500
START = 0
COUNTED = 0.75


class Chain(Model):
    """An order-1 model in float64 that reads only the last token of a context."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocabulary, as_float(model).next_token)
        size = range(len(model.vocabulary))
        for before, last in itertools.product(size, size):
            if (model.next_token((before, last)) != model.next_token((last,))).any():
                raise ValueError(f"model depends on more than the last token of {(before, last)}")
        self.rows = np.stack([self.next_token((last,)) for last in size])

    def next_token(self, context: Sequence[int]) -> Floats:
        """The law after a context, in a time that does not grow with it."""
        return super().next_token(tuple(context[-1:]))


class BadText(ValueError):  # noqa: N818 (a finding about the sampler, not an error of the caller)
    """The sampler did not return a text of the requested length."""


Places: TypeAlias = Mapping[int, tuple[CampaignCase, int]]
"""{token: the case of its successors, and how many of them may be counted}."""


def judge_markov(
    generate: Generate,
    target: Model,
    drafter: Model,
    *,
    tokens: int,
    seed: int,
    alpha: float = ALPHA,
) -> CampaignReport:
    """Generate texts of an order-1 Markov target, and bet on each token given the one before.

    The campaign has one case for each token that can come before another. How many transitions
    each counts is fixed beforehand (three quarters of those expected of the target), because
    the bounds on total variation do not hold for numbers that the text itself decides.

    Texts have up to 500 tokens, and each continues the last one. If `generate` fails, or returns a
    text of another length, `stopped` says so.
    """
    if target.vocabulary.eos is not None:
        raise ValueError(f"target has EOS {target.vocabulary.eos!r}: expected an endless chain")
    chain = Chain(target)
    campaign = Campaign(alpha=alpha, eps=None, view="stream", seed=seed)
    quotas = _quotas(chain.rows, tokens)
    places = {
        last: (
            campaign.case(
                chain,
                drafter,
                (last,),
                algorithm="autoregressive",
                name=f"after {target.vocabulary.tokens[last]!r}",
                mutants={},
                tokens=1,
            ),
            int(quotas[last]),
        )
        for last in np.flatnonzero(quotas).tolist()
    }
    rng = np.random.default_rng(seed)
    try:
        for text in _texts(generate, chain, _quick(drafter), tokens, rng):
            _count(campaign, places, text)
            if campaign.decided_lossy:
                break
    except BadText as failure:
        campaign.stopped = str(failure)
    return campaign.report()


def _quick(model: Model) -> Model:
    try:
        return Chain(model)
    except ValueError:
        return as_float(model)


def _quotas(chain: Floats, tokens: int) -> Ints:
    """Three quarters of the expected number of visits to each token."""
    here, visits = np.eye(len(chain))[START], np.zeros(len(chain))
    for _ in range(tokens):
        visits += here
        here = here @ chain
    quotas = np.floor(COUNTED * visits).astype(np.int64)
    if not quotas.any():
        raise ValueError(f"tokens = {tokens}: expected more, to count any transition")
    return quotas


def _texts(
    generate: Generate, target: Model, drafter: Model, tokens: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """Texts, each with the token before it."""
    last, size, give = START, len(target.vocabulary), giver(generate)
    for start in range(0, tokens, TEXT):
        wanted = min(TEXT, tokens - start)
        try:
            text = tuple(give((target, drafter, (last,), wanted), rng))
        except Exception as error:
            reason = f"generate raised {described(error)}"
            raise BadText("\n".join([reason, *traceback_lines(error)])) from error
        array = np.array((last, *text))
        if len(text) != wanted:
            raise BadText(f"generate gave {len(text)} tokens, not {wanted}")
        if array.dtype.kind not in "iu" or not ((array >= 0) & (array < size)).all():
            raise BadText(f"generate gave {text[:8]}, …: expected token ids < {size}")
        yield array.astype(np.int64)
        last = int(text[-1])


def _count(campaign: Campaign, places: Places, text: Ints) -> None:
    """Bet on the transitions of one text; look only afterwards.

    In between, the bets are in the order of the cases, which is not that of the text.
    """
    samples = []
    for last, (case, quota) in places.items():
        following = text[1:][text[:-1] == last][: quota - case.trials]
        excluded = following[case.tree.p[0, following] <= 0]
        if len(excluded):
            campaign.exclude(f"token {excluded[0]} {case.name}: the target excludes it")
        samples.append((case, following[:, None]))
    campaign.add_all(samples)
