"""A maximum flow from sets to their own members, exact: augmenting paths until there is none.

Edmonds and Karp 1972: along shortest paths, so that it ends soon, whatever the amounts. A path
fills an edge, takes back what another set sends to the same member, fills another edge of that
set, and so on, to a member that has room. A toy: every set is a node.
"""

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from specref.distributions import Probability

Edge: TypeAlias = tuple[frozenset[int], int]
Path: TypeAlias = tuple[Edge, ...]
Flow: TypeAlias = dict[Edge, Probability]


def maximum_flow(
    supply: Mapping[frozenset[int], Probability], room: Mapping[int, Probability]
) -> Flow:
    """The most that sets can send to members of theirs.

    Parameters
    ----------
    supply : mapping
        {set: the most that it sends}; int or Fraction, as rounding would leave paths.
    room : mapping
        {member: the most that it takes}, for every member of a set.

    Returns
    -------
    dict
        {(set, member): amount}, where positive.

    Examples
    --------
    >>> both, alone = frozenset({0, 1}), frozenset({0})
    >>> flow = maximum_flow({both: 2, alone: 2}, {0: 2, 1: 3})  # both gives 0 back
    >>> {(*source, member): amount for (source, member), amount in flow.items()}
    {(0, 0): 2, (0, 1, 1): 2}
    """
    left, space, flow = dict(supply), dict(room), Flow()
    while path := _augmenting_path(left, space, flow):
        (source, _), (_, member) = path[0], path[-1]
        filled, emptied = path[::2], path[1::2]
        amount = min([left[source], space[member], *(flow[edge] for edge in emptied)])
        left[source] -= amount
        space[member] -= amount
        flow |= {edge: flow.get(edge, 0) + amount for edge in filled}
        flow |= {edge: flow[edge] - amount for edge in emptied}
    return {edge: amount for edge, amount in flow.items() if amount}


def _augmenting_path(
    left: Mapping[frozenset[int], Probability], space: Mapping[int, Probability], flow: Flow
) -> Path:
    """A shortest one: edges to fill, and between them edges to empty; () if there is none."""
    paths: dict[frozenset[int], Path] = {source: () for source, most in left.items() if most > 0}
    pending = deque(paths)
    while pending:
        source = pending.popleft()
        for member in sorted(source):
            path = (*paths[source], (source, member))
            if space[member] > 0:
                return path
            for edge, amount in flow.items():
                if edge[1] == member and amount > 0 and edge[0] not in paths:
                    paths[edge[0]] = (*path, edge)
                    pending.append(edge[0])
    return ()
