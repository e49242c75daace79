"""Rules as state machines: the decision in each state, and the states that follow.

The sites are those of the reference algorithms. A draft after the first rejection is never
looked at, so where drafts are target tokens each is verified before the next is drawn: the
block is the same function of the coins, and the tree is smaller.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache

from specref.algorithms.lookahead import fixed, positions
from specref.algorithms.text.push_forward import conditional_psi
from specref.distributions import Probabilities, corrected, normalise, relabel
from specref.machines.states import END, Branches, State, accepted, drawn
from specref.models import Model
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate

REMEMBERED_LAWS = 4096


class Machine(ABC):
    """A rule as a state machine: a first state, and what follows each."""

    def __init__(self, target: Model, drafter: Model, context: Tokens, lookahead: int) -> None:
        self.target = target
        self.drafter = drafter
        self.context = tuple(context)
        self.lookahead = lookahead

    @abstractmethod
    def start(self) -> State:
        """The state before the first coin."""

    def branches(self, state: State) -> Branches:
        """What follows `state`: `at_draft` decides at a site such as ``draft[2]``."""
        decide: Callable[[State], Branches] = getattr(self, "at_" + state.site.partition("[")[0])
        return decide(state)

    def p(self, kept: Tokens) -> Probabilities:
        """The target's distribution after `kept`."""
        return self.target.next_token((*self.context, *kept))

    def last(self, kept: Tokens, probabilities: Probabilities) -> Branches:
        """The draw of the last token of a block."""
        return drawn(probabilities, lambda token: State(END, (*kept, token)))


class Autoregressive(Machine):
    """One token from the target."""

    def start(self) -> State:
        return State("target[0]", ())

    def at_target(self, state: State) -> Branches:
        return self.last((), self.p(()))


class Verifier(Machine):
    """Rejection sampling: accept with min(1, p / q), end with a residual or a bonus token."""

    @abstractmethod
    def q(self, kept: Tokens) -> Probabilities:
        """The law of the draft after `kept`, over the target's tokens."""

    @abstractmethod
    def go_on(self, kept: Tokens, drafts: Tokens) -> State:
        """The state once `kept` are accepted and `drafts` are yet to be verified."""

    def at_accept(self, state: State) -> Branches:
        """Keep the first draft, or draw from the residual."""
        kept, (token, *others) = state.kept, state.drafts
        return accepted(
            min(self.p(kept)[token] / self.q(kept)[token], 1),
            yes=lambda: self.go_on((*kept, token), tuple(others)),
            no=lambda: State("residual", kept),
        )

    def at_residual(self, state: State) -> Branches:
        p, q = self.p(state.kept), self.q(state.kept)
        return self.last(state.kept, corrected(p, q))

    def at_bonus(self, state: State) -> Branches:
        return self.last(state.kept, self.p(state.kept))


class TokenLevel(Verifier):
    """Drafts are target tokens: each is verified before the next is drawn."""

    def __init__(self, target: Model, drafter: Model, context: Tokens, lookahead: int) -> None:
        super().__init__(target, drafter, context, len(positions(lookahead)))
        self.shared = intersection(target.vocabulary, drafter.vocabulary)
        self.drafter_ids = {token: drafter_id for drafter_id, token in self.shared.items()}
        self.read = self.drafters_context()

    @abstractmethod
    def drafters_context(self) -> Tokens | None:
        """The context in the drafter's tokens, or None if it cannot read it."""

    @abstractmethod
    def law(self, kept: Tokens) -> Probabilities:
        """What the draft after `kept` is drawn from."""

    def submitted(self, outcome: int) -> int | None:
        """The target token that a drawn index stands for, or None if the target lacks it."""
        return outcome

    def drafters_law(self, kept: Tokens) -> Probabilities:
        """The drafter's distribution after `kept`."""
        return self.drafter.next_token(self.seen(kept))

    def seen(self, kept: Tokens) -> Tokens:
        """The context and `kept`, in the drafter's tokens."""
        return (*(self.read or ()), *(self.drafter_ids[token] for token in kept))

    def start(self) -> State:
        return self.go_on((), ())

    def go_on(self, kept: Tokens, drafts: Tokens) -> State:
        """Draft on, unless `kept` ends the block or the drafting."""
        if self.target.vocabulary.ends(kept):
            return State(END, kept)
        return State(f"draft[{len(kept)}]" if self.can_draft(kept) else "bonus", kept)

    def can_draft(self, kept: Tokens) -> bool:
        if self.read is None or len(kept) == self.lookahead:
            return False
        return not (kept and self.drafter.vocabulary.ends(self.seen(kept)))

    def at_draft(self, state: State) -> Branches:
        """Submit the drawn token; what the target lacks is rejected without a coin."""

        def submit(outcome: int) -> State:
            token = self.submitted(outcome)
            if token is None:
                return State("residual", state.kept)
            return State(f"accept[{len(state.kept)}]", state.kept, (token,))

        return drawn(self.law(state.kept), submit)


class Standard(TokenLevel):
    """One vocabulary for both models."""

    def drafters_context(self) -> Tokens:
        if self.target.vocabulary.tokens != self.drafter.vocabulary.tokens:
            raise ValueError(
                "drafter has another vocabulary than target: simulate union, tli, slem or slrs"
            )
        return self.context

    def law(self, kept: Tokens) -> Probabilities:
        return self.drafters_law(kept)

    def q(self, kept: Tokens) -> Probabilities:
        return self.drafters_law(kept)


class Union(TokenLevel):
    """The drafter draws from all its tokens; one that the target lacks is rejected."""

    def drafters_context(self) -> Tokens | None:
        """The context token by token, or by its text."""
        try:
            return translate(self.context, self.target.vocabulary, self.drafter.vocabulary)
        except UntokenisableError:
            return None

    def law(self, kept: Tokens) -> Probabilities:
        """The drafter's distribution, over its own tokens."""
        return self.drafters_law(kept)

    def submitted(self, outcome: int) -> int | None:
        """The same token in the target's vocabulary."""
        return self.shared.get(outcome)

    def q(self, kept: Tokens) -> Probabilities:
        """The drafter's distribution on the target's tokens: the rest of its mass is missing."""
        return relabel(self.drafters_law(kept), self.shared, len(self.target.vocabulary))


class TokenLevelIntersection(Union):
    """The drafter is confined to shared tokens."""

    def __init__(self, target: Model, drafter: Model, context: Tokens, lookahead: int) -> None:
        super().__init__(target, drafter, context, lookahead)
        self.confined = lru_cache(REMEMBERED_LAWS)(lambda kept: normalise(Union.q(self, kept)))

    def can_draft(self, kept: Tokens) -> bool:
        """Not where the drafter has no mass on shared tokens."""
        return super().can_draft(kept) and bool(super().q(kept).any())

    def law(self, kept: Tokens) -> Probabilities:
        """The drafter's distribution given a shared token, over the target's tokens."""
        return self.confined(kept)

    def submitted(self, outcome: int) -> int | None:
        return outcome

    def q(self, kept: Tokens) -> Probabilities:
        return self.confined(kept)


class StringLevel(Machine):
    """The drafter writes a text; the target's tokens of it are verified afterwards."""

    def __init__(self, target: Model, drafter: Model, context: Tokens, lookahead: int) -> None:
        super().__init__(target, drafter, context, lookahead)
        self.seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
        self.stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)

    @abstractmethod
    def go_on(self, kept: Tokens, drafts: Tokens) -> State:
        """The state once `kept` are accepted and `drafts` are yet to be verified."""

    def start(self) -> State:
        return self.drafted(())

    def drafted(self, drafts: Tokens) -> State:
        """Draft on, or read the text with the target's tokeniser."""
        if self.stop(drafts) or self.drafter.vocabulary.ends(drafts):
            text = self.drafter.vocabulary.decode(drafts)
            return self.go_on((), self.target.vocabulary.encode(text))
        return State(f"draft[{len(drafts)}]", (), drafts)

    def at_draft(self, state: State) -> Branches:
        q = self.drafter.next_token((*self.seen, *state.drafts))
        return drawn(q, lambda token: self.drafted((*state.drafts, token)))


class StringLevelExactMatch(StringLevel):
    """Target samples, up to and with the first that differs from the drafted text."""

    def go_on(self, kept: Tokens, drafts: Tokens) -> State:
        """Sample from the target, unless `kept` ends the block."""
        ended = self.target.vocabulary.ends(kept)
        return State(END, kept) if ended else State(f"target[{len(kept)}]", kept, drafts)

    def at_target(self, state: State) -> Branches:
        """Keep the sample; go on if it is the next draft."""

        def match(token: int) -> State:
            longer = (*state.kept, token)
            matches = state.drafts[:1] == (token,)
            return self.go_on(longer, state.drafts[1:]) if matches else State(END, longer)

        return drawn(self.p(state.kept), match)


class StringLevelRejectionSampling(StringLevel, Verifier):
    """The target's tokens of the drafted text, verified against psi given those before."""

    def q(self, kept: Tokens) -> Probabilities:
        rows = conditional_psi(self.target.vocabulary, self.drafter, self.seen, self.lookahead)
        return rows[kept]

    def go_on(self, kept: Tokens, drafts: Tokens) -> State:
        """Verify the next draft; after the last, longer texts may have mass left."""
        if self.target.vocabulary.ends(kept):
            return State(END, kept)
        if drafts:
            return State(f"accept[{len(kept)}]", kept, drafts)
        return State("residual" if self.q(kept).any() else "bonus", kept)
