"""Primes are primes, and composites are not taken for them."""

import random

import pytest

from specref.proofs.everywhere.number import _is_prime, prime_of

SMALL = [n for n in range(2, 2000) if all(n % d for d in range(2, int(n**0.5) + 1))]


@pytest.mark.parametrize("seed", range(3))
def test_a_random_prime_passes_the_test_of_fermat_and_small_divisors(seed: int) -> None:
    prime = prime_of(seed)
    assert prime.bit_length() == 224
    assert all(prime % small for small in SMALL)
    assert all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7, 11))


def test_seeds_give_their_own_primes() -> None:
    assert prime_of(0) == prime_of.__wrapped__(0)
    assert len({prime_of(seed) for seed in range(4)}) == 4


def test_odd_numbers_are_told_apart() -> None:
    """Also those of which most bases of the test of Fermat say that they are prime."""
    rng = random.Random(1)
    assert [n for n in range(5, 2000, 2) if _is_prime(n, rng)] == SMALL[2:]
    assert not any(_is_prime(carmichael, rng) for carmichael in (561, 1105, 1729, 252601, 3828001))


def test_a_seed_has_the_same_prime_on_every_machine() -> None:
    assert prime_of(0) % 10**12 == 789_174_712_293
