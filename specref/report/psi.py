"""The decompositions of a text: as a tree that says what it leaves out, and as a record."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rich.console import Group, RenderableType
from rich.text import Text as Line
from rich.tree import Tree

from specref.theory.counting import Spellings
from specref.vocabulary import Text


@dataclass(frozen=True)
class Spelled:
    """What `specref psi` reports on.

    Parameters
    ----------
    found : Spellings
        Of the text; at least one.
    vocabulary : str
        Its name, and how large it is.
    identity : str
        "string" or "bytes".
    """

    found: Spellings
    vocabulary: str
    identity: str


def psi_report(spelled: Spelled, nodes: int) -> RenderableType:
    """The figures, and the tree up to so many nodes; without it for `nodes` = 0."""
    lines = Line("\n".join(_figures(spelled)))
    return Group(spelling_tree(spelled.found, nodes), lines) if nodes else lines


def psi_record(spelled: Spelled, most: int) -> dict[str, object]:
    """The same as a record, with up to `most` decompositions, the longest tokens first."""
    found = spelled.found
    listed = list(islice(listing(found), most))
    return {
        "text": _shown(found.text),
        "identity": spelled.identity,
        "vocabulary": spelled.vocabulary,
        "decompositions": found.count,
        "possible": 2 ** (len(found.text) - 1),
        "n_max": found.n_max,
        "forwards": found.forwards,
        "listed": [[_shown(piece) for piece in pieces] for pieces in listed],
        "left_out": found.count - len(listed),
    }


def listing(found: Spellings) -> Iterator[tuple[Text, ...]]:
    """The decompositions as pieces, the longest tokens first, one at a time.

    Examples
    --------
    >>> from specref.theory.counting import spellings
    >>> from specref.vocabulary import Vocabulary
    >>> list(listing(spellings("abb", Vocabulary(["a", "b", "ab"]))))
    [('ab', 'b'), ('a', 'b', 'b')]
    """
    stack: list[tuple[int, tuple[Text, ...]]] = [(0, ())]
    while stack:
        start, pieces = stack.pop()
        if start == len(found.text):
            yield pieces
            continue
        stack += [(end, (*pieces, found.text[start:end])) for end in _next(found, start)]


def spelling_tree(found: Spellings, nodes: int) -> Tree:
    """The tree of decompositions, the longest tokens first, with up to `nodes` nodes.

    What is left out below a node is counted, not listed.

    Examples
    --------
    >>> from rich.console import Console
    >>> from specref.theory.counting import spellings
    >>> from specref.vocabulary import Vocabulary
    >>> found = spellings("abb", Vocabulary(["a", "b", "ab", "bb"]))
    >>> Console(width=40, color_system=None).print(spelling_tree(found, 3))
    'abb'
    ├── 'ab'
    │   └── 'b'
    └── 'a'
        └── … 2 more
    """
    tree = Tree(Line(repr(found.text)))
    _grow(tree, found, 0, nodes)
    return tree


def _grow(branch: Tree, found: Spellings, start: int, nodes: int) -> int:
    """Add what follows `start`; gives how many nodes may still be added."""
    ends = _next(found, start)
    for place, end in enumerate(reversed(ends)):
        if not nodes:
            left = sum(found.after[e] for e in ends[: len(ends) - place])
            branch.add(Line(f"… {left:,} more", "dim"))
            break
        child = branch.add(Line(repr(found.text[start:end])))
        nodes = _grow(child, found, end, nodes - 1)
    return nodes


def _next(found: Spellings, start: int) -> list[int]:
    """Where the tokens at `start` end with which a spelling goes on."""
    ends = () if start == len(found.text) else found.ends[start]
    return [end for end in ends if found.after[end]]


def _figures(spelled: Spelled) -> list[str]:
    found = spelled.found
    possible = 2 ** (len(found.text) - 1)
    unit = "characters" if spelled.identity == "string" else "bytes"
    return [
        f"{found.text!r} over {spelled.vocabulary}, by {spelled.identity}",
        f"decompositions  {found.count:,} of {possible:,} cuts of {len(found.text)} {unit}",
        f"n_max           {found.n_max:,}: the most tokens of one",
        f"forwards        {found.forwards:,} contexts of the drafter, all known beforehand",
        "The sum of their masses is not psi, the law of the first target token: see "
        "specref.theory.psi.",
    ]


def _shown(piece: Text) -> str:
    return piece.decode("utf-8", "backslashreplace") if isinstance(piece, bytes) else piece
