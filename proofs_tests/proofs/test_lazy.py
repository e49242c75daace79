"""The lazy enumerator: steps that insist on drawn tokens, and the limit that laws share."""

import pytest

from specref.algorithms import Step, standard
from specref.chance import MAX_SITES, Chance, TooManyPathsError
from specref.models import Model, iid_model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.vocabulary import Tokens, Vocabulary

AB = Vocabulary("ab")
TARGET, DRAFTER = iid_model(AB, [0.25, 0.75]), iid_model(AB, [0.5, 0.5])


def insists(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Draws the target's tokens, the same block in two ways, and wants them as integers."""
    chance.draw(drafter.next_token(context), "unused")
    token = chance.draw(target.next_token(context), "token")
    if not isinstance(token, int):
        raise TypeError(f"token = {token!r}: expected an integer")
    return (token,)


def test_a_step_that_insists_on_integers_has_its_law() -> None:
    enumerator = Enumerator(1_000)
    models = ReadableModel(TARGET), ReadableModel(DRAFTER)
    law = enumerator.law(insists, *models, (), 1)
    assert law == {(0,): 0.25, (1,): 0.75}
    tried = enumerator.paths
    assert 4 < tried < 10  # the four paths, and those that were tried lazily
    assert enumerator.law(insists, *models, (0,), 1) == law
    assert enumerator.paths == 2 * tried


@pytest.mark.parametrize("step", [insists, standard.step])
def test_laws_share_one_limit(step: Step) -> None:
    def paths(limit: int) -> int:
        enumerator = Enumerator(limit)
        for context in ((), (0,)):
            enumerator.law(step, ReadableModel(TARGET), ReadableModel(DRAFTER), context, 1)
        return enumerator.paths

    needed = paths(1_000)
    assert paths(needed) == needed
    with pytest.raises(TooManyPathsError):
        paths(needed - 1)


@pytest.mark.parametrize("asked", ["draw", "choose"])
@pytest.mark.parametrize("more", [0, 1])
def test_tokens_that_nothing_looks_at_are_limited_too(more: int, asked: str) -> None:
    def forgetful(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        ask = getattr(chance, asked)
        drawn = [ask(target.next_token(context), "t") for _ in range(MAX_SITES + more)]
        return (drawn[0],)

    def law() -> object:
        models = ReadableModel(TARGET), ReadableModel(DRAFTER)
        return Enumerator(1_000).law(forgetful, *models, (), 1)

    if not more:
        assert law() == {(0,): 0.25, (1,): 0.75}
        return
    with pytest.raises(TooManyPathsError, match=r"more than 1000 random decisions \(at t\)"):
        law()
