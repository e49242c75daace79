"""Steps and texts that go on after EOS: they fail, and are asked whether the adapter stops."""

from typing import Any

import pytest

from specref.algorithms import autoregressive, standard
from specref.chance import Chance, Sampled
from specref.conformance.public import check
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.sampling import AFTER_EOS, read_tokens, until_end
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

pytestmark = pytest.mark.usefixtures("undiagnosed")

IDS = ["joint/eos", "joint/exact", "iterations/eos", "end-to-end/eos"]


def endless(model: Model) -> Model:
    """The same laws, but nobody knows which token is EOS."""
    return Model(Vocabulary(model.vocabulary.tokens), model.next_token)


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    return standard.step(endless(target), endless(drafter), context, lookahead, chance)


def drawn(target: Model, drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Tokens:
    return step(target, drafter, context, lookahead, Sampled(rng))


def generate(target: Model, drafter: Model, context: Tokens, tokens: int, rng: Any) -> Tokens:
    text: Tokens = ()
    while len(text) < tokens:
        text += drawn(target, drafter, (*context, *text), 2, rng)
    return text[:tokens]


def messages(implementation: Any, contract: str) -> dict[str, str]:
    report = check(implementation, contract=contract, only=IDS, trials=1_000, blocking=False)
    return {result.id: result.message for result in report.failures}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("implementation", "contract", "ids"),
    [
        (step, "step", {"joint/exact", "joint/eos", "iterations/eos"}),
        (drawn, "step", {"joint/eos", "iterations/eos"}),
        (generate, "generate", {"end-to-end/eos"}),
    ],
)
def test_tokens_after_eos_are_asked_about(
    implementation: Any, contract: str, ids: set[str]
) -> None:
    found = messages(implementation, contract)
    assert found.keys() == ids
    assert all(message.endswith(AFTER_EOS) for message in found.values())


@pytest.mark.deep
def test_other_failures_are_not_put_down_to_it() -> None:
    """The last token is impossible before EOS, too, or the law is wrong without it."""

    def impossible(target: Any, drafter: Any, context: Any, lookahead: int, chance: Chance) -> Any:
        block = step(target, drafter, context, lookahead, chance)
        law = target.next_token(context)
        return (next(x for x in range(len(law)) if not law[x]), *block[1:]) if 0 in law else block

    def lossy(target: Any, drafter: Any, context: Any, lookahead: int, chance: Chance) -> Any:
        return autoregressive.step(endless(drafter), drafter, context, lookahead, chance)

    for implementation in (impossible, lossy):
        found = messages(implementation, "step")
        assert "joint/exact" in found
        assert not any(AFTER_EOS in message for message in found.values())


def test_a_block_that_is_too_long_is_asked_only_if_it_has_an_eos() -> None:
    eos = CHAIN_FIXTURES["eos"].eos
    with pytest.raises(BrokenContractError, match="does the adapter stop there"):
        read_tokens((0, eos, 1, 1), 3, CHAIN_FIXTURES["eos"])
    for raw, fixture in (
        ((0, 1, 1, eos), CHAIN_FIXTURES["eos"]),
        ((0, eos, 1, 1), CHAIN_FIXTURES["wide"]),
    ):
        with pytest.raises(BrokenContractError, match=r"expected 1 to 3$"):
            read_tokens(raw, 3, fixture)


def test_tokens_up_to_eos() -> None:
    eos = CHAIN_FIXTURES["eos"].eos
    assert eos is not None
    assert until_end(CHAIN_FIXTURES["eos"], (0, eos, eos)) == (0, eos)
    assert until_end(CHAIN_FIXTURES["eos"], (0, 1)) == (0, 1)
    assert until_end(CHAIN_FIXTURES["wide"], (0, eos, 1)) == (0, eos, 1)
