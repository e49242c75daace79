"""Checks of the inputs of verification: shapes for free, values by waiting for the device."""

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins

NO_DRAFT, OUTSIDE = -1, -2
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32)
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5}
COARSE = 1e-2


def validate(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    *,
    lens: Tensor | None = None,
    coins: Coins | None = None,
) -> None:
    """Check the values that `verify` takes on trust; waits for the device.

    Only what a verification may read is checked: rows after a row's last draft may hold
    anything. Sums may be wrong by 1e-9 in float64, 1e-5 in float32 and 1e-2 in half precision.

    Parameters
    ----------
    target_probs, draft_probs, draft_tokens, lens, coins
        As for `verify`; `coins` may be left out.

    Raises
    ------
    TypeError, ValueError
        As `verify`; and for the first length, token, distribution or random number that is out of
        range, or draft of q = 0.

    Examples
    --------
    >>> p, q = torch.full((1, 2, 2), 0.5), torch.tensor([[[1.0, 0.0]]])
    >>> validate(p, q, torch.tensor([[1]]))
    Traceback (most recent call last):
    ValueError: q of draft_tokens[0, 0] = 0.0: expected > 0, since it was drafted
    """
    check_shapes(target_probs, draft_probs, draft_tokens, lens)
    _check_tokens(draft_tokens, lens, target_probs.shape[2])
    drafts = padded_drafts(draft_tokens, lens)
    negative = (drafts < 0).long()
    reached = negative.cumsum(dim=1) == negative
    check_laws("target_probs", target_probs, reached, least=1.0)
    if draft_probs is not None:
        drafted = (reached & (drafts != NO_DRAFT))[:, :-1]
        check_laws("draft_probs", draft_probs, drafted, least=0.0)
        check_drafted(draft_probs, drafts[:, :-1], reached[:, :-1])
    if coins is not None:
        check_coins(coins, target_probs)
        check_coin_values(coins)


def check_shapes(
    target_laws: Tensor,
    draft_laws: Tensor | None,
    draft_tokens: Tensor,
    lens: Tensor | None,
    kind: str = "probs",
) -> None:
    """Check shapes and dtypes of laws, which are "probs" or "logits", without a look at values.

    * raises `TypeError`: Laws are no floats, or tokens or lengths no integers.
    * raises `ValueError`: Shapes do not fit.
    """
    target, drafter = f"target_{kind}", f"draft_{kind}"
    expect_kind(target, target_laws, floats=True)
    expect_kind("draft_tokens", draft_tokens, floats=False)
    if draft_laws is not None:
        expect_kind(drafter, draft_laws, floats=True)
    if lens is not None:
        expect_kind("lens", lens, floats=False)
    if target_laws.ndim != 3 or not all(target_laws.shape[1:]):
        shape = tuple(target_laws.shape)
        raise ValueError(f"{target} has shape {shape}: expected (B, K + 1, V), V >= 1")
    rows, longest, size = target_laws.shape
    expect_shape("draft_tokens", draft_tokens, (rows, longest - 1))
    expect_shape(drafter, draft_laws, (rows, longest - 1, size))
    expect_shape("lens", lens, (rows,))


def check_coins(coins: Coins, target_probs: Tensor) -> None:
    """Check the shapes of coins.

    * raises `ValueError`: Shapes do not fit, or there is neither `final` nor `race`.
    """
    rows, longest, size = target_probs.shape
    expect_shape("coins.accept", coins.accept, (rows, longest - 1))
    expect_shape("coins.final", coins.final, (rows,))
    expect_shape("coins.race", coins.race, (rows, size))
    if coins.final is None and coins.race is None:
        raise ValueError("coins.final and coins.race are None: expected one of them")


def padded_drafts(draft_tokens: Tensor, lens: Tensor | None) -> Tensor:
    """The drafts, shape (B, K + 1): NO_DRAFT from the end of each row on.

    >>> padded_drafts(torch.tensor([[4, 5, 6]]), torch.tensor([2]))
    tensor([[ 4,  5, -1, -1]])
    """
    drafts = torch.nn.functional.pad(draft_tokens.long(), (0, 1), value=NO_DRAFT)
    if lens is None:
        return drafts
    position = torch.arange(drafts.shape[1], device=drafts.device)
    return drafts.masked_fill(position >= lens[:, None], NO_DRAFT)


def expect_kind(name: str, values: object, *, floats: bool) -> None:
    """Raise `TypeError` if it is no tensor of floats, or else of integers."""
    kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
    if kind not in (FLOATS if floats else INTEGERS):
        expected = "floats" if floats else "integers"
        raise TypeError(f"{name} is of {kind}: expected a tensor of {expected}")


def expect_shape(name: str, values: Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` if there is a tensor, and it has another shape."""
    if values is not None and values.shape != shape:
        raise ValueError(f"{name} has shape {tuple(values.shape)}: expected {shape}")


def _check_tokens(tokens: Tensor, lens: Tensor | None, size: int) -> None:
    most = tokens.shape[1]
    if lens is None:
        ended = (tokens == NO_DRAFT).cumsum(dim=1) > 0
        refuse("draft_tokens", tokens, ended & (tokens != NO_DRAFT), "-1 after the last draft")
        inside = ~ended
    else:
        refuse("lens", lens, (lens < 0) | (lens > most), f"0 to {most}")
        inside = torch.arange(most, device=tokens.device) < lens[:, None]
    known = ((tokens >= 0) & (tokens < size)) | (tokens == OUTSIDE)
    refuse("draft_tokens", tokens, inside & ~known, f"0 <= id < {size}, or {OUTSIDE}")


def check_laws(name: str, laws: Tensor, read: Tensor, least: float) -> None:
    """Raise `ValueError` if a row that is read is negative, or its sum is not in [least, 1]."""
    wrong = read[..., None] & ~(laws >= 0)
    refuse(name, laws, wrong, "a non-negative probability")
    tolerance = TOLERANCES.get(laws.dtype, COARSE)
    totals = laws.sum(dim=-1, dtype=torch.float64)
    wrong = read & ~((totals >= least - tolerance) & (totals <= 1 + tolerance))
    expected = "1" if least == 1 else "at most 1"
    refuse(f"sum of {name}", totals, wrong, f"{expected} within {tolerance:g}")


def check_drafted(laws: Tensor, drafts: Tensor, reached: Tensor) -> None:
    """Raise `ValueError` if q excludes a draft that is reached."""
    chance = laws.gather(2, drafts.clamp(min=0)[..., None])[..., 0]
    wrong = reached & (drafts >= 0) & ~(chance > 0)
    refuse("q of draft_tokens", chance, wrong, "> 0, since it was drafted")


def check_coin_values(coins: Coins) -> None:
    """Raise `ValueError` if a uniform is not in [0, 1), or noise is negative."""
    for name, uniforms in {"accept": coins.accept, "final": coins.final}.items():
        if uniforms is not None:
            wrong = ~((uniforms >= 0) & (uniforms < 1))
            refuse(f"coins.{name}", uniforms, wrong, "a number in [0, 1)")
    if coins.race is not None:
        refuse("coins.race", coins.race, ~(coins.race >= 0), "a number >= 0")


def refuse(name: str, values: Tensor, wrong: Tensor, expected: str) -> None:
    """Raise `ValueError` for the first value that is wrong."""
    places = wrong.nonzero()
    if len(places):
        place = places[0].tolist()
        value = values[tuple(place)].item()
        raise ValueError(f"{name}[{', '.join(map(str, place))}] = {value}: expected {expected}")
