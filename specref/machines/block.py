"""Block verification as a machine: all drafts first, then coins from the last one back."""

from functools import lru_cache

import numpy as np

from specref.distributions import Probability, corrected
from specref.machines.machines import REMEMBERED_LAWS, Standard
from specref.machines.states import END, Branches, State, accepted, drawn
from specref.models import Model
from specref.vocabulary import Tokens


class BlockVerification(Standard):
    """The longest prefix of the drafts whose coin succeeds, and one more token.

    Once the target excludes a draft, the drafts after it change nothing, and are not drawn.
    """

    def __init__(self, target: Model, drafter: Model, context: Tokens, lookahead: int) -> None:
        super().__init__(target, drafter, context, lookahead)
        self.survival = lru_cache(REMEMBERED_LAWS)(self._survival)

    def _survival(self, drafts: Tokens) -> Probability:
        """P_i: with it i drafts are accepted, once these are drafted."""
        if not drafts:
            return 1
        *before, token = drafts
        kept = tuple(before)
        ratio: Probability = (self.survival(kept) * self.p(kept))[token] / self.q(kept)[token]
        return min(1, ratio)

    def start(self) -> State:
        return State("bonus" if self.is_last(()) else "draft[0]", ())

    def is_last(self, drafts: Tokens) -> bool:
        """Whether no draft comes after these."""
        return self.target.vocabulary.ends(drafts) or not self.can_draft(drafts)

    def at_draft(self, state: State) -> Branches:
        """One more draft; after the last, or one that is impossible, the first coin."""

        def submit(token: int) -> State:
            drafts = (*state.drafts, token)
            if not self.survival(drafts):
                return self.coin(state.drafts)
            more = not self.is_last(drafts)
            return State(f"draft[{len(drafts)}]", (), drafts) if more else self.coin(drafts)

        return drawn(self.q(state.drafts), submit)

    def coin(self, drafts: Tokens) -> State:
        """The state that decides whether to accept all of these, if there are any."""
        return State(f"accept[{len(drafts) - 1}]", (), drafts) if drafts else State("residual", ())

    def at_accept(self, state: State) -> Branches:
        """Accept these drafts, or ask about one fewer."""
        return accepted(
            self.stopping(state.drafts),
            yes=lambda: self.ended(state.drafts),
            no=lambda: self.coin(state.drafts[:-1]),
        )

    def stopping(self, drafts: Tokens) -> Probability:
        """h_i: P_i after all drafts, otherwise sum R_i / (sum R_i + 1 - P_i), or 0 for 0/0."""
        survival = self.survival(drafts)
        if self.is_last(drafts):
            return survival
        total: Probability = np.maximum(survival * self.p(drafts) - self.q(drafts), 0).sum()
        return total / (total + (1 - survival)) if total else total

    def ended(self, drafts: Tokens) -> State:
        """The state once these are accepted and no others."""
        if self.target.vocabulary.ends(drafts):
            return State(END, drafts)
        return State("bonus" if self.is_last(drafts) else "residual", drafts)

    def at_residual(self, state: State) -> Branches:
        """A token from (P_i p - q)+."""
        kept = state.kept
        return self.last(kept, corrected(self.survival(kept) * self.p(kept), self.q(kept)))
