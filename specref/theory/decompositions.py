"""Decompositions: the ways to spell a text with the tokens of a vocabulary."""

from specref.vocabulary import Text, Tokens, Vocabulary


def decompositions(text: Text, vocabulary: Vocabulary) -> tuple[Tokens, ...]:
    """Every token sequence whose concatenation equals `text`.

    Timor et al. 2025, Lemma 3.1, counts these ("equals", not "starts with", is what its
    number 2^(m-1) is true for). Their mass is not psi: see `specref.theory.psi`.

    Returns
    -------
    tuple of tuple of int
        In lexicographic order of the cuts; the empty text has one decomposition, ``()``.

    Examples
    --------
    >>> decompositions("abb", Vocabulary(["a", "b", "ab", "bb"]))
    ((0, 1, 1), (0, 3), (2, 1))
    """
    if not text:
        return ((),)
    found: list[Tokens] = []
    for cut in range(1, min(vocabulary.longest, len(text)) + 1):
        if text[:cut] in vocabulary.ids:
            head = vocabulary.ids[text[:cut]]
            found += [(head, *tail) for tail in decompositions(text[cut:], vocabulary)]
    return tuple(found)
