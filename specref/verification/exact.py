"""The exact part of the main job: proofs of one iteration, of the loop, and of acceptance."""

from specref.algorithms import Step
from specref.distributions import Probability
from specref.losslessness.exact import Law, is_lossless_loop, output_distribution, proof
from specref.pairs import Case, Pair, Profile, cases, toy_pairs
from specref.theory import accepted_length_distribution
from specref.theory.acceptance import ONE_VOCABULARY
from specref.verification.reports import AlgorithmReport
from specref.vocabulary import Tokens

LOOP_TOKENS = 3
LOOP_LOOKAHEAD = 2


def applies(algorithm: str, pair: Pair) -> bool:
    """Whether an algorithm is defined for the vocabularies of a pair."""
    if algorithm in ONE_VOCABULARY:
        return pair.same_vocabulary
    return pair.by_text or algorithm not in ("slem", "slrs")


def cases_of(profile: Profile) -> tuple[Case, ...]:
    """The cases of a profile.

    Examples
    --------
    >>> len(cases_of("quick"))
    154
    """
    return tuple(cases(toy_pairs(profile), profile))


def check_case(algorithm: str, step: Step, case: Case) -> AlgorithmReport:
    """Prove one case: the completed block, the decode loop, the law of accepted lengths.

    Parameters
    ----------
    algorithm : str
        Whose closed form of acceptance is compared.
    step : callable
    case : Case

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> check_case("standard", standard.step, cases_of("quick")[0]).failures
    ()
    """
    pair = case.pair
    if not applies(algorithm, pair):
        return AlgorithmReport(algorithm, not_applicable=1)
    arguments = (pair.target, pair.drafter, case.context, case.lookahead)
    blocks, paths = output_distribution(step, *arguments)
    proved = proof(blocks, pair.target, case.context, paths)
    failures = [] if proved else [f"{case}: lossy, {proved.difference}"]
    with_loop = case.lookahead == LOOP_LOOKAHEAD and not case.context
    if with_loop:
        failures += _loop_failures(step, case)
    # An accepted EOS ends a block without a token of its own: lengths would not tell.
    with_acceptance = pair.target.vocabulary.eos is None
    if with_acceptance:
        failures += _acceptance_failures(algorithm, blocks, case)
    return AlgorithmReport(
        algorithm, 1, paths, 0, int(with_loop), int(with_acceptance), tuple(failures)
    )


def _loop_failures(step: Step, case: Case) -> list[str]:
    arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
    loop = is_lossless_loop(step, *arguments, length=LOOP_TOKENS)
    return [] if loop else [f"{case}: decode loop lossy, {loop.difference}"]


def _acceptance_failures(algorithm: str, blocks: Law, case: Case) -> list[str]:
    arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
    formula = accepted_length_distribution(algorithm, *arguments)
    counted = accepted_lengths(blocks)
    return [] if formula == counted else [f"{case}: acceptance {counted} not {formula}"]


def accepted_lengths(blocks: dict[Tokens, Probability]) -> tuple[Probability, ...]:
    """The law of the accepted length, from blocks that end with one token of their own.

    Examples
    --------
    >>> accepted_lengths({(0,): 0.25, (1,): 0.25, (0, 1): 0.5})
    (0.5, 0.5)
    """
    law: dict[int, Probability] = {}
    for block, probability in blocks.items():
        law[len(block) - 1] = law.get(len(block) - 1, 0) + probability
    return tuple(law.get(length, 0) for length in range(max(law) + 1))
