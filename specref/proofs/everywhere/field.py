"""A random prime field: where two rational functions agree there, they are called equal.

A rational function whose numerator has degree at most s, and coefficients of at most s bits, is 0
at a random point of a random prime field by accident with probability at most s 2^-214. Its
numerator is no multiple of the prime, but for the at most s / 223 primes of 224 bits that divide
a coefficient, of more than 2^215; and then it is 0 at no more than the share s 2^-223 of all
points, by the lemma of Schwartz and Zippel. A number that passes 64 rounds of the test of Miller
and Rabin is composite with probability at most 2^-128.
"""

import random
from functools import cache

BITS = 224
ROUNDS = 64
ACCIDENT = 214
"""A wrong identity of size s has probability at most s 2^-ACCIDENT."""


@cache
def prime_of(seed: int) -> int:
    """A random prime of 224 bits; the test for it takes milliseconds, so it is kept."""
    rng = random.Random(f"specref everywhere {seed} prime")
    while True:
        number = rng.getrandbits(BITS) | 1 | 1 << (BITS - 1)
        if _is_prime(number, rng):
            return number


def _is_prime(number: int, rng: random.Random) -> bool:
    odd = number - 1
    halvings = (odd & -odd).bit_length() - 1
    odd >>= halvings
    for _ in range(ROUNDS):
        power = pow(rng.randrange(2, number - 1), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(halvings - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
