"""The situations that a rule is tried in: the toy pairs, and what they leave out.

The laws of a situation are chosen so that the random paths stay few: rows with few positive
entries where there are many drafts or tokens, two tokens where there are many values.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from specref.distributions import Probabilities, Row
from specref.models import Model, hashed_model, iid_model
from specref.pairs import SEEDED_PAIRS, Case, Pair, Profile, cases, toy_pairs
from specref.vocabulary import Tokens, Vocabulary

TOY_PAIRS = "toy pairs"
LENGTHS = (*range(4, 18), 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 1025)
EVERY_LENGTH = range(4, 131)
DENSE, SIZES = (6, 7, 8), (*range(9, 67), 128, 129, 256, 257, 1030)
POSSIBLE = (24, 64)
VALUES = ("2/5", "1/5", "1/9", "1/20", "1/50", "1/100", "1/1000", "1e-6", "1e-9", "1e-15")
EOS_PAIRS = (
    *(("1/5", "2/5"), ("2/5", "1/5"), ("1/3", "1/3"), ("0", "1/4"), ("1/4", "0")),
    *(("1/100", "1/2"), ("1/2", "1/100"), ("19/20", "1/20"), ("1/20", "19/20"), ("1", "1/2")),
    *(("1e-6", "1/2"), ("1/2", "1e-6")),
)
MIXED_WEIGHTS = (
    *((1,), (1, 1), (1, 19), (1, 99), (1, 2), (2, 3), (1, 1, 1), (1, 2, 3), (1, 9, 90)),
    *((1, 1000, 1000), (1, 1, 1, 1), (1, 2, 3, 4), (5, 5, 5, 1)),
)
MIXED_CONTEXTS = (0, 1, 2, 3, 5, 9, 20, 50, 100)


@dataclass(frozen=True)
class Situation:
    """A kind of case, and the cases of that kind.

    * `cases`: The smallest first.
    """

    name: str
    cases: tuple[Case, ...]


def situations(
    profile: Profile = "quick",
    same_vocabulary: bool = True,
    only: Collection[str] | None = None,
) -> tuple[Situation, ...]:
    """The situations of a profile, the toy pairs first.

    * `profile` ({"quick", "standard", "thorough"}): The larger ones have more toy pairs, and more
      of the pairs that mix what others vary.
    * `same_vocabulary`: Only pairs over one vocabulary.
    * raises `ValueError`: `only` names no situation.
    """
    for name in only or ():
        if name not in SITUATIONS:
            raise ValueError(f"only has {name!r}: expected some of {', '.join(SITUATIONS)}")
    made = (
        Situation(name, tuple(_wanted(SITUATIONS[name](profile), same_vocabulary)))
        for name in SITUATIONS
        if only is None or name in only
    )
    return tuple(situation for situation in made if situation.cases)


def _wanted(every: Iterator[Case], same_vocabulary: bool) -> Iterator[Case]:
    return (case for case in every if case.pair.same_vocabulary or not same_vocabulary)


def _initial_contexts(profile: Profile) -> Iterator[Case]:
    """Every context of one to three tokens, and one of each of many lengths."""
    two, three = Vocabulary("ab"), Vocabulary("abc")
    small = Pair("contexts of a, b", *_hashed("contexts ab", two))
    large = Pair("contexts of a, b, c", *_hashed("contexts abc", three))
    for pair, lookahead in ((large, 1), (small, 2)):
        ids = range(len(pair.target.vocabulary))
        for length in (1, 2, 3):
            for context in product(ids, repeat=length):
                yield Case(pair, context, lookahead)
    for length in EVERY_LENGTH:
        yield Case(small, _context(length, two), 1)
    for length, lookahead in product(LENGTHS, (1, 2)):
        yield Case(large, _context(length, three), lookahead)


def _vocabulary_sizes(profile: Profile) -> Iterator[Case]:
    """Six to eight tokens, all possible; up to 1,030, a few of them possible; 64 possible ones."""
    for size in DENSE:
        vocabulary = _letters(size)
        pair = Pair(f"{size} tokens", *_hashed(f"{size} tokens", vocabulary))
        for context in ((), _context(1, vocabulary), _context(3, vocabulary)):
            yield Case(pair, context, 1)
    yield Case(
        Pair("6 tokens, two drafts", *_drawn("6 tokens", _letters(6), (1, 2, 3), (2, 1, 1))), (), 2
    )
    for size in SIZES:
        vocabulary = _letters(size)
        few, many = ((f"{size} {share}", Fraction(share)) for share in ("1/4", "1/2"))
        p = _with_last(vocabulary, *few, (1, 2, 3))
        q = _with_last(vocabulary, *many, (4, 1))
        straight = Pair(f"{size} tokens", p, q)
        turned = Pair(f"{size} tokens, turned", q, p)
        if size % 2 == 0 or size > 66:
            yield Case(straight, (), 1)
        if size % 2 == 1 or 66 < size < 1000:
            yield Case(turned, _context(3, vocabulary), 1)
        if size in (9, 16, 17):
            yield Case(straight, (), 2)
    for size in POSSIBLE:
        vocabulary = _letters(size + 6)
        p, q = _drawn(f"{size} possible", vocabulary, range(1, size + 1), (3, 1))
        first = _either(lambda context: not context, p, drawn_model(vocabulary, "then", (1, 2)))
        yield Case(Pair(f"{size} possible tokens", first, q), (), 1)
    flat = _letters(12)
    equal = iid_model(flat, [Fraction(1, 12)] * 12)
    yield Case(Pair("12 equal tokens", equal, drawn_model(flat, "equal tokens", (3, 1))), (), 1)


def _lookaheads(profile: Profile) -> Iterator[Case]:
    """Three to five drafts from rows of two tokens; six to sixteen, most of them certain."""
    three, four = Vocabulary("abc"), Vocabulary("abcd")
    laws = ((1, 1), (1, 3)), ((1, 2), (3, 2)), ((2, 3), (1, 2)), ((1, 1, 1), (1, 1))
    for lookahead in (3, 4, 5):
        for number, (p, q) in enumerate(laws[: 7 - lookahead]):
            vocabulary = (three, four)[number % 2]
            pair = Pair(f"long block #{number}", *_drawn(f"long {number}", vocabulary, p, q))
            yield Case(pair, (), lookahead)
        yield Case(_same_support(f"shared support, {lookahead} drafts"), (1,), lookahead)
    for lookahead in range(6, 17):
        sure = Pair("long block, sure", *_drawn("sure", three, (1, 2), (1,)))
        if lookahead <= 8:
            yield Case(sure, (), lookahead)
        yield Case(_seldom_random(f"seldom random, {lookahead} drafts"), (), lookahead)


def _same_support(key: str) -> Pair:
    """p = (2/3, 1/3) or (1/3, 2/3) and q = (1/2, 1/2), on the same two of three tokens."""
    vocabulary = Vocabulary("abc")
    target = drawn_model(vocabulary, key, (1, 2))
    even = Fraction(1, 2)

    def q(context: Tokens) -> Row:
        return np.array([even if p else Fraction(0) for p in target.next_token(context)])

    return Pair(key, target, Model(vocabulary, q))


def _seldom_random(key: str) -> Pair:
    """Every fourth position random, the others certain and right."""
    vocabulary = Vocabulary("abc")
    sure = drawn_model(vocabulary, f"{key} sure", (1,))
    models = _drawn(key, vocabulary, (1, 2), (1, 2))
    target, drafter = (_either(lambda c: len(c) % 4 == 3, law, sure) for law in models)
    return Pair(key, target, drafter)


def _either(condition: Callable[[Tokens], bool], model: Model, other: Model) -> Model:
    """One model in the contexts for which a condition holds, another one elsewhere."""
    return Model(model.vocabulary, lambda c: (model if condition(c) else other).next_token(c))


def _small_probabilities(profile: Profile) -> Iterator[Case]:
    """Every pair of ten values of p and of q, 2/5 to 1e-15, on one token or on two."""
    two, three = Vocabulary("ab"), Vocabulary("abc")
    for number, (x, y) in enumerate(product(VALUES, repeat=2)):
        p, q = (_coin(one) for one in (x, y))
        for name, law in (("", q), (" on the other token", q[::-1])):
            turned = slice(None, None, -1 if number % 2 else None)  # both ids have small values
            models = iid_model(two, p[turned]), iid_model(two, law[turned])
            yield Case(Pair(f"p = {x}, q = {y}{name}", *models), (), 1)
    for x, y in product(VALUES[1::2], repeat=2):
        models = _drawn("by context", two, _odds(x), _odds(y))
        yield Case(Pair(f"p and q with {x} and {y}", *models), (), 2)
    for weights in ((1, 9, 90), (1, 19, 80), (1, 1, 38), (1, 999, 1000)):
        key = ":".join(map(str, weights))
        for lookahead in (1, 2):
            yield Case(
                Pair(f"weights {key}", *_drawn(key, three, weights, weights)), (), lookahead
            )


def _coin(value: str) -> list[Fraction]:
    return [Fraction(value), 1 - Fraction(value)]


def _odds(value: str) -> tuple[int, int]:
    x = Fraction(value)
    return x.numerator, x.denominator - x.numerator


def _eos(profile: Profile) -> Iterator[Case]:
    """EOS first, in the middle or last; less, more or as likely in p as in q, at every depth."""
    laws = list(enumerate(EOS_PAIRS))
    for lookahead in (1, 2, 3):
        few = laws if lookahead == 1 else laws[: 9 - 2 * lookahead]
        for eos, (number, (p, q)) in product(range(3 if lookahead < 3 else 1), few):
            vocabulary = Vocabulary("abc", eos="abc"[eos])
            others = [token for token in range(3) if token != eos]
            target, drafter = (
                _with_eos(vocabulary, eos, Fraction(mass), f"EOS {eos} {name} {number}")
                for name, mass in (("p", p), ("q", q))
            )
            pair = Pair(f"EOS {'abc'[eos]!r}, p = {p} and q = {q}", target, drafter)
            context = tuple(others[i % 2] for i in range((0, 1, 3)[number % 3]))
            yield Case(pair, context, lookahead)
            if number < 3 > lookahead:  # a prompt that follows an EOS
                yield Case(pair, (eos, others[number % 2]), lookahead)


def _with_eos(vocabulary: Vocabulary, eos: int, mass: Fraction, key: str) -> Model:
    """EOS has this probability everywhere, the other two 2/3 and 1/3 of the rest."""
    rest = drawn_model(Vocabulary("ab"), key, (1, 2))

    def row(context: Tokens) -> Row:
        others = ((1 - mass) * rest.next_token(tuple(token % 2 for token in context))).tolist()
        return [*others[:eos], mass, *others[eos:]]

    return Model(vocabulary, row)


def _residual_sizes(profile: Profile) -> Iterator[Case]:
    """Residuals of one to eight tokens, at the first draft and at later ones."""
    for size in range(1, 9):
        pair = _residual_of(size)
        for lookahead in range(1, 2 + (size <= 4) + (size <= 2)):
            yield Case(pair, (), lookahead)


def _residual_of(size: int) -> Pair:
    """One token is likelier in q than in p, and so many tokens are less likely."""
    vocabulary = _letters(size + 1)
    target = drawn_model(vocabulary, f"residual {size} p", range(2, size + 3))
    likely = drawn_model(vocabulary, f"residual {size} q", (1,))

    def q(context: Tokens) -> Row:
        p, extra = target.next_token(context), likely.next_token(context)
        less = [mass * Fraction(1 + token % 2, 3) for token, mass in enumerate(p)]
        row: Probabilities = np.array(less) + (1 - sum(less)) * extra
        return row

    return Pair(f"residual of {size}", target, Model(vocabulary, q))


def _equal_rows(profile: Profile) -> Iterator[Case]:
    """q is p everywhere, at even lengths, at odd lengths, or after some contexts."""
    three = Vocabulary("abc")
    target, other = _drawn("equal rows", three, (1, 2, 3), (3, 1, 1))
    alike: Sequence[tuple[str, Callable[[Tokens], bool]]] = (
        ("even", lambda context: len(context) % 2 == 0),
        ("odd", lambda context: len(context) % 2 == 1),
        ("at first", lambda context: len(context) < 2),
        ("later", lambda context: len(context) >= 2),
        ("after a", lambda context: context[-1:] == (0,)),
    )
    sparse, few = _drawn("equal rows of two", three, (1, 3), (1, 1))
    yield from (Case(Pair("drafter is target", target, target), (), n) for n in (1, 2))
    yield from (Case(Pair("drafter is target, sparse", sparse, sparse), (), n) for n in (3, 4, 5))
    for name, same in alike:
        pair = Pair(f"equal {name}", target, _either(same, target, other))
        yield from (Case(pair, (), lookahead) for lookahead in (1, 2))
        pair = Pair(f"equal {name}, sparse", sparse, _either(same, sparse, few))
        yield Case(pair, (), 3)


def _sure_rows(profile: Profile) -> Iterator[Case]:
    """One possible draft, as from a lookup; or one possible token of the target."""
    four = Vocabulary("abcd")
    certain = drawn_model(four, "certain", (1,))
    random = Pair("one possible token", certain, drawn_model(four, "some", (1, 3)))
    looked_up = Pair("one possible draft", drawn_model(four, "any", (1, 2, 3)), certain)
    sparse = Pair("one possible draft of two tokens", drawn_model(four, "two", (1, 2)), certain)
    for lookahead in (1, 2, 3, 4, 5):
        yield Case(looked_up if lookahead < 4 else sparse, (), lookahead)
        yield Case(random, (), lookahead)


def _mixed(profile: Profile) -> Iterator[Case]:
    """Size, weights, EOS, initial context and lookahead drawn together, by number."""
    for number in range(8 * SEEDED_PAIRS[profile]):
        digits = hashlib.blake2b(f"mixed {number}".encode(), digest_size=16).digest()
        eos = digits[2] if digits[1] % 3 == 0 and digits[0] % 8 else None
        vocabulary = _letters(2 + digits[0] % 8, eos)
        size = len(vocabulary)
        p, q = (MIXED_WEIGHTS[digit % len(MIXED_WEIGHTS)][:size] for digit in digits[3:5])
        longest = max(n for n in range(1, 6) if n == 1 or (len(p) * len(q)) ** n <= 81)
        pair = Pair(f"mixed #{number}", *_drawn(f"mixed {number}", vocabulary, p, q))
        context = _context(MIXED_CONTEXTS[digits[5] % len(MIXED_CONTEXTS)], vocabulary)
        yield Case(pair, context, 1 + digits[6] % longest)


def _two_vocabularies(profile: Profile) -> Iterator[Case]:
    """What one vocabulary is tried in, for drafters with another."""
    pieces, others = Vocabulary(["a", "b", "ab"]), Vocabulary(["ba", "b", "a"])
    for number, context in enumerate([(0,), (2,), (1, 2, 0), (0, 1, 1, 2, 0, 2, 1)]):
        pair = Pair(f"pieces #{number}", *_hashed(f"pieces {number}", pieces, others))
        yield from (Case(pair, context, lookahead) for lookahead in (1, 2))
    ends = Vocabulary(["$", "a", "b", "ab"], eos="$"), Vocabulary(["$", "a", "b", "ba"], eos="$")
    for number, (p, q) in enumerate([((1, 3), (3, 1)), ((2, 1, 1), (1, 2, 3))]):
        pair = Pair(
            f"EOS first, two vocabularies #{number}",
            *_drawn(f"ends {number}", ends[0], p, q, ends[1]),
        )
        yield from (Case(pair, context, lookahead) for context, lookahead in [((), 1), ((1,), 2)])
    many = Vocabulary(["a", "b", "c", "d", "ab", "cd", "abc"])
    more = Vocabulary(["d", "c", "b", "a", "bc", "da", "dd", "cba"])
    for number, (p, q) in enumerate([((1, 2), (1, 1)), ((1, 9, 90), (2, 1))]):
        pair = Pair(
            f"seven tokens and eight #{number}", *_drawn(f"many {number}", many, p, q, more)
        )
        yield from (
            Case(pair, context, lookahead) for context, lookahead in [((), 1), ((6, 1, 4), 2)]
        )
    for lookahead in (3, 4):
        models = _drawn("long, two vocabularies", pieces, (1, 2), (1, 1), others)
        yield Case(Pair("long block, two vocabularies", *models), (), lookahead)


SITUATIONS: Mapping[str, Callable[[Profile], Iterator[Case]]] = {
    TOY_PAIRS: lambda profile: cases(toy_pairs(profile), profile),
    "initial contexts": _initial_contexts,
    "vocabulary sizes": _vocabulary_sizes,
    "lookaheads": _lookaheads,
    "small p and q": _small_probabilities,
    "EOS": _eos,
    "residual sizes": _residual_sizes,
    "equal rows": _equal_rows,
    "sure rows": _sure_rows,
    "mixed": _mixed,
    "two vocabularies": _two_vocabularies,
}


def drawn_model(vocabulary: Vocabulary, key: str, weights: Sequence[int]) -> Model:
    """A model whose rows have the same entries, on tokens that the whole context decides.

    * `key`: Models with other keys put the entries on other tokens.
    * `weights`: Normalised, the positive entries of a row.
    """
    total = sum(weights)

    def row(context: Tokens) -> Probabilities:
        digest = hashlib.blake2b(f"{key}:{context}".encode(), digest_size=64).digest()
        number, left = int.from_bytes(digest), list(range(len(vocabulary)))
        entries = np.full(len(vocabulary), Fraction(0))
        for weight in weights:
            number, place = divmod(number, len(left))
            entries[left.pop(place)] = Fraction(weight, total)
        return entries

    return Model(vocabulary, row)


def _drawn(
    key: str,
    vocabulary: Vocabulary,
    p: Sequence[int],
    q: Sequence[int],
    drafter: Vocabulary | None = None,
) -> tuple[Model, Model]:
    other = drafter or vocabulary
    return drawn_model(vocabulary, f"{key} p", p), drawn_model(other, f"{key} q", q)


def _hashed(
    key: str, vocabulary: Vocabulary, drafter: Vocabulary | None = None
) -> tuple[Model, Model]:
    return hashed_model(vocabulary, f"{key} p"), hashed_model(drafter or vocabulary, f"{key} q")


def _letters(size: int, eos: int | None = None) -> Vocabulary:
    """Tokens of one letter; with `eos`, one of them is EOS."""
    tokens = [chr(ord("a") + i) if i < 26 else chr(0x4E00 + i) for i in range(size)]
    return Vocabulary(tokens, None if eos is None else tokens[eos % size])


def _context(length: int, vocabulary: Vocabulary) -> Tokens:
    """Some tokens that the length decides, none of them EOS."""
    eos = None if vocabulary.eos is None else vocabulary.ids[vocabulary.eos]
    ids = [token for token in range(len(vocabulary)) if token != eos]
    digests = (hashlib.blake2b(f"{length}:{i}".encode()).digest()[0] for i in range(length))
    return tuple(ids[digest % len(ids)] for digest in digests)


def _with_last(vocabulary: Vocabulary, key: str, share: Fraction, weights: Sequence[int]) -> Model:
    """Rows that give a share to the last token, and the rest to drawn ones."""
    drawn = drawn_model(vocabulary, key, weights)
    last = np.full(len(vocabulary), Fraction(0))
    last[-1] = share
    return Model(vocabulary, lambda context: (1 - share) * drawn.next_token(context) + last)
