"""The contract ``text``: an engine is asked for a text, by a prompt, a budget and a seed.

An engine is a black box with models, caches and sampler settings of its own. What it is judged by
comes with it: the law of its target, or its own plain mode under the same settings.
"""

import inspect
import json
import os
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import TEXT
from specref.contracts.signature import Read
from specref.models import Model, check_ids, iid_model
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree
from specref.vocabulary import Tokens

SPECULATIVE, PLAIN = "speculative", "plain"


@dataclass(frozen=True)
class Text:
    """The answer of an engine: a text, and how many drafts were proposed and accepted for it.

    Attributes
    ----------
    tokens : tuple of int
        Without the prompt; up to EOS, with it.
    proposed, accepted : int or None
        Draft tokens; None if the engine does not say. `accepted` may come alone.
    """

    tokens: Sequence[int]
    proposed: int | None = None
    accepted: int | None = None


class Respond(Protocol):
    """Contract ``text``: a prompt, a budget and a seed in, a text out.

    The text has as many tokens as the budget says, or ends with EOS.
    """

    def __call__(self, prompt: Tokens, budget: int, seed: int) -> Text | Sequence[int]: ...


@dataclass(frozen=True)
class Prompt(Place):
    """The place of a text: its prompt."""

    @property
    def name(self) -> str:
        return f"prompt {self.context}"


@dataclass(frozen=True)
class Engine:
    """An engine with speculative decoding, and what its texts are compared with.

    Attributes
    ----------
    speculative : callable
        (prompt, budget, seed) -> `Text`, or token ids; see `Respond`.
    prompts : sequence of tuple of int
        Token ids; each is tried.
    law : Model or None
        The law of every next token, after the engine's own sampler settings; its vocabulary
        says which token is EOS.
    plain : callable or None
        The same engine without speculation, under the same settings. With a law it is tried
        first; without, the texts of both are compared.
    drafter : Model or None
        The law of the drafter, if it is known: then bets are made on where it is wrong, too.
    tokens : int
        How many tokens of a text are asked for; they are judged jointly. A text should be
        longer than what one iteration gives.
    eos : int or None
        The token that ends a text, where there is no law.
    same_text : bool
        Whether the engine promises the text of plain mode under the same seed.

    Raises
    ------
    TypeError, ValueError
        An attribute is of another type or out of range; there is neither a law nor a plain mode.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> def zeros(prompt, budget, seed):
    ...     return Text((0,) * budget, proposed=budget, accepted=budget)
    >>> engine = Engine(zeros, prompts=[(1,)], law=iid_model(Vocabulary("ab"), [0.5, 0.5]))
    >>> engine((1,), 3, 7).tokens
    (0, 0, 0)
    """

    speculative: Respond
    prompts: Sequence[Tokens]
    law: Model | None = None
    plain: Respond | None = None
    drafter: Model | None = None
    tokens: int = TEXT
    eos: int | None = None
    same_text: bool = False

    def __post_init__(self) -> None:
        if not callable(self.speculative):
            raise TypeError(f"speculative = {self.speculative!r}: expected a function")
        if self.plain is not None and not callable(self.plain):
            raise TypeError(f"plain = {self.plain!r}: expected a function, or None")
        for name in ("law", "drafter"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Model):
                raise TypeError(f"{name} = {value!r}: expected a Model, or None")
        if self.law is None and self.plain is None:
            raise ValueError("law = None, plain = None: expected one of them at least")
        if self.same_text and self.plain is None:
            raise ValueError("same_text = True: expected plain, too")
        whole = isinstance(self.tokens, Integral) and not isinstance(self.tokens, bool)
        if not whole or self.tokens < 2:
            raise ValueError(
                f"tokens = {self.tokens!r}: expected at least 2, since the first token alone "
                "hides most bugs"
            )
        if self.law is not None and self.eos is not None:
            raise ValueError(f"eos = {self.eos!r}: expected None, since the law names it")
        if self.law is not None and self.drafter is not None:
            here, there = len(self.law.vocabulary), len(self.drafter.vocabulary)
            if here != there:
                raise ValueError(f"drafter has {there} tokens: expected {here}, as the law")
        if not self.prompts:
            raise ValueError("prompts is empty: expected at least one")
        for index, prompt in enumerate(self.prompts):
            if not isinstance(prompt, Sequence):
                raise TypeError(f"prompts[{index}] = {prompt!r}: expected a tuple of token ids")
            check_ids(prompt, f"prompts[{index}]")
            if self.law is not None:
                self.law.vocabulary.check(tuple(prompt), f"prompts[{index}]")
        prompts = tuple(tuple(map(int, prompt)) for prompt in self.prompts)
        object.__setattr__(self, "prompts", prompts)
        if len(set(self.prompts)) < len(self.prompts):
            raise ValueError("prompts has one twice: expected different ones")

    def __call__(self, prompt: Tokens, budget: int, seed: int) -> Text | Sequence[int]:
        """A text by speculative decoding."""
        return self.speculative(prompt, budget, seed)

    def mode(self, name: str) -> Respond:
        """The function of a mode, "speculative" or "plain"."""
        found = self.plain if name == PLAIN else self.speculative
        assert found is not None
        return found

    @cached_property
    def end(self) -> int | None:
        """The token that ends a text."""
        if self.law is None:
            return self.eos
        vocabulary = self.law.vocabulary
        return None if vocabulary.eos is None else vocabulary.ids[vocabulary.eos]

    @cached_property
    def fixture(self) -> Fixture:
        """The law at each prompt, for engines that have one."""
        assert self.law is not None
        places = tuple(Prompt(prompt, 1) for prompt in self.prompts)
        if self.drafter is not None:
            return Fixture("engine", self.law, self.drafter, places)
        vocabulary = self.law.vocabulary
        flat = iid_model(vocabulary, [1 / len(vocabulary)] * len(vocabulary))
        return Fixture("engine", self.law, flat, places, drafter_known=False)

    @cached_property
    def trees(self) -> tuple[PrefixTree, ...]:
        """Every text after each prompt with its probability, for engines that have a law."""
        assert self.law is not None
        return tuple(
            prefix_tree(self.law, self.law, prompt, length=self.tokens) for prompt in self.prompts
        )

    @property
    def fingerprint(self) -> int | None:
        """A number that changes with the law; None without one."""
        return (
            None if self.law is None else zlib.crc32(b"".join(t.p.tobytes() for t in self.trees))
        )


class TextContract(Contract):
    bets_on_bugs: ClassVar[bool] = False
    written: ClassVar[bool] = False
    fixtures: ClassVar[dict[str, Fixture]] = {}
    tried_on: ClassVar[str] = "on its prompts"
    of_engines: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    ruled: ClassVar[bool] = False

    def takes(self, signature: inspect.Signature) -> bool:
        return super().takes(signature) and self.names(signature)

    def read(
        self, function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
    ) -> Read:
        self.admit(function)
        return capabilities, ()

    def admit(self, implementation: Callable[..., Any]) -> None:
        """Raise an error unless it is an engine whose law can be judged jointly."""
        if not isinstance(implementation, Engine):
            raise TypeError(
                f"implementation = {implementation!r}: expected an Engine, which has a "
                "distribution or a "
                "non-speculative decoding to compare with (specref.contracts.text)"
            )
        if implementation.law is None:
            return
        try:
            _ = implementation.trees
        except ValueError:
            raise ValueError(
                f"tokens = {implementation.tokens}: expected fewer: the texts after a prompt are "
                "judged jointly, and have more than 2,000,000 probabilities (without "
                "distribution, they are compared with those of non-speculative decoding)"
            ) from None


ENGINE = TextContract("text", Respond, ("prompt", "budget", "seed"))


FORMAT = "specref texts 1"


class Asked(NamedTuple):
    """What an engine was asked."""

    mode: str
    prompt: Tokens
    budget: int
    seed: int


class Journal:
    """The texts that an engine gave, by what it was asked.

    The first line says which engine it is; each other line is a question and its answer. A line
    that a killed process left unfinished is dropped.

    * `engine`: What tells this engine from others, as JSON can hold it.
    """

    def __init__(self, path: str | Path, engine: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._texts: dict[Asked, deque[Text]] = defaultdict(deque)
        head = json.dumps({"format": FORMAT, **engine})
        lines = self._lines(head) if self.path.exists() else []
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            unfinished.write_text("".join(f"{x}\n" for x in [head, *lines]), encoding="utf-8")
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        self._file = self.path.open("a", encoding="utf-8")

    def take(self, asked: Asked) -> Text | None:
        """The answer that an earlier run got, each once; None if there is no other."""
        found = self._texts.get(asked)
        return found.popleft() if found else None

    def write(self, asked: Asked, text: Text) -> None:
        """Append a text; it is in the file when this returns."""
        line = [*asked, tuple(text.tokens), text.proposed, text.accepted]
        self._file.write(f"{json.dumps(line)}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._file.close()

    def _lines(self, head: str) -> list[str]:
        """The complete lines below the first; their texts can be taken."""
        try:
            first, *lines = self.path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"texts = {self.path}: expected text ({error})") from None
        if first != head:
            raise ValueError(
                f"texts = {self.path}: expected texts of this engine, {head}, not {first[:300]!r}"
            )
        *complete, _ = lines or [""]  # after the last line end
        for number, line in enumerate(complete, 2):
            try:
                mode, prompt, budget, seed, tokens, proposed, accepted = json.loads(line)
                asked = Asked(mode, tuple(prompt), budget, seed)
                self._texts[asked].append(Text(tuple(tokens), proposed, accepted))
            except (ValueError, TypeError):
                raise ValueError(
                    f"texts = {self.path}, line {number}: expected a question and its answer"
                ) from None
        return complete
