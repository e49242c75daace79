"""Stage joint: steps that take `chance`, proved or refuted for every p and q over two tokens."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specref.chance import Chance, OutsideChanceError, TooManyPathsError
from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.contracts.functions import StepContract
from specref.contracts.timeout import within
from specref.models import Model
from specref.tracebacks import own_traceback
from specref.vocabulary import Tokens

if TYPE_CHECKING:
    from specref.proofs.everywhere import Everywhere

LETTERS = ("a", "b")
LOOKAHEADS = (1, 2)
BUDGET = 4.0
MOST_CONDITIONS = 4


def everywhere(judge: Judge) -> Outcome:
    """Whether an iteration is lossless whatever p and q are, as far as a few seconds go."""
    if "chance" not in judge.keywords:
        return not_applicable("not exercised: takes no chance")
    # Imported where it is needed: other checks start without it.
    from specref.proofs.everywhere.proof import spelled_rows
    from specref.proofs.everywhere.solver import is_installed

    if not is_installed():
        return not_applicable("not exercised: z3 is not installed; pip install z3-solver")
    proved: list[str] = []
    bits: list[int] = []
    rest = ""
    for lookahead in LOOKAHEADS:
        found = within(judge.timeout, partial(_asked, judge, lookahead))
        if isinstance(found, str):
            rest = f"not exercised: {found}"
        elif found.witness and not found.witness.error:
            return _failed(found)
        elif found.witness:
            at = spelled_rows(found, found.witness.rows)
            rest = f"not exercised: raises {found.witness.error} at {at}"
        elif not found:
            rest = f"not exercised to the end: {found.open} pieces are open after {BUDGET:g} s"
        else:
            proved.append(f"{found.regions} regions at lookahead {lookahead}")
            bits.append(found.bits)
            continue
        rest += f", at lookahead {lookahead}"
        break
    if not proved:
        return not_applicable(rest)
    said = f"proved for every p and q over {len(LETTERS)} tokens: {', '.join(proved)}"
    said += f"; error of the identity tests <= 2^-{min(bits) - len(bits) + 1}"
    return passed(said + f"; {rest}" * bool(rest))


def _asked(judge: Judge, lookahead: int) -> "Everywhere | str":
    """What is found; or why the function cannot be run with numbers that stand for all rows."""
    from specref.proofs.everywhere import is_lossless_everywhere

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        raw: Any = judge.implementation(target, drafter, context, lookahead, chance=chance)
        return tuple(map(int, raw))

    try:
        return is_lossless_everywhere(
            step, LETTERS, lookahead=lookahead, budget=BUDGET, seed=judge.options.seed
        )
    except (OutsideChanceError, TooManyPathsError, TypeError, ValueError) as error:
        return f"{error}{_line(error)}"
    except Exception as error:  # of the function, which may need other tokens or floats
        return f"raised {type(error).__name__}: {error}{_line(error)}"


def _line(error: Exception) -> str:
    own = own_traceback(error)
    if own is None:
        return ""
    return f" (line {own.tb_lineno} of {Path(own.tb_frame.f_code.co_filename).name})"


def _failed(found: "Everywhere") -> Outcome:
    from specref.proofs.everywhere.proof import spelled_rows

    witness = found.witness
    assert witness is not None
    rows = spelled_rows(found, witness.rows)
    some = witness.conditions[:MOST_CONDITIONS]
    where = f" where {', '.join(some)}" + ", …" * (len(witness.conditions) > len(some))
    return failed(
        f"lossy{where if some else ''}: TV {witness.distance} at {rows}, others uniform "
        f"({len(LETTERS)} tokens, lookahead {found.lookahead})",
        total_variation=str(witness.distance),
        conditions=list(witness.conditions),
        rows=rows,
        trace=witness.trace,
    )


CHECKS = (Check("joint/everywhere", StepContract, everywhere, law=True),)
