"""Hugging Face Transformers: `generate` with an assistant, under the contract ``generate``.

`generate(target, drafter, context, tokens, rng)` runs the library's own loop, drafting and
verification on toy models; nothing of it is replaced or patched.
"""

from functools import lru_cache

import numpy as np

from specref.contrib.engines.forwards import Block, blocks
from specref.contrib.engines.toy_pairs import Path, ToyPair, check_options, generated, toy_pair
from specref.contrib.engines.toy_tokenizers import Order
from specref.models import Model
from specref.vocabulary import Tokens

REMEMBERED_PAIRS = 32


class Generate:
    """`generate` of Transformers by one of its paths, as a function of specref models.

    * `path` ({"ar", "sd", "tli", "slem", "pld"}): Without an assistant; with one of the same
      vocabulary (`assistant_model`); with `assistant_tokenizer` and `do_sample` (universal
      speculative decoding, TLI); with it and greedy decoding (universal assisted generation,
      SLEM); prompt lookup.
    * `lookahead`: The number of tokens to draft; the assistant drafts no fewer, whatever its
      confidence.
    * `greedy`: Decode by argmax. SLEM is always greedy.
    * `temperature`: Passed to `generate`, with logits multiplied by it beforehand: after the
      library's warping, the target's law is that of the `Model`, and so is the drafter's if it is
      warped once.
    * `order` ({"shipped", "sorted", "reversed"}): How the assistant's tokenizer lists its
      vocabulary.
    * `anew`: Make new models and tokenizers for every text, as in a process of its own. The order
      "shipped" is then drawn for every text.
    * `blocks`: Blocks of the last text without its last block, which may be cut. They are derived
      from the lengths of the target's forward passes.
    * `forwards` (tuple of (int, int)): Number of forward passes of target and drafter for the last
      text.
    * raises `ValueError`: An unknown path, a lookahead < 1, a temperature <= 0, or SLEM that is
      not greedy.

    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> ab = Vocabulary("ab")
    >>> turns = markov_model(ab, [1, 0], [[0, 1], [1, 0]])
    >>> generate = Generate("sd", lookahead=2)
    >>> generate(turns, turns, (), 7, np.random.default_rng(1))
    (0, 1, 0, 1, 0, 1, 0)
    >>> generate.blocks[0]
    Block(start=0, drafted=2, accepted=2)
    """

    def __init__(
        self,
        path: Path,
        *,
        lookahead: int = 4,
        greedy: bool | None = None,
        temperature: float = 1.0,
        order: Order = "shipped",
        anew: bool = False,
    ) -> None:
        check_options(path, lookahead, greedy, temperature)
        self.path, self.lookahead, self.order = path, lookahead, order
        self.greedy = path == "slem" if greedy is None else greedy
        self.temperature = temperature
        self.blocks: tuple[Block, ...] = ()
        self.forwards = (0, 0)
        self.pair = self._pair if anew else lru_cache(REMEMBERED_PAIRS)(self._pair)

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        tokens: int,
        rng: np.random.Generator,
    ) -> Tokens:
        """Generate `tokens` target tokens after `context`, or up to EOS.

        * raises `ValueError`: `tokens` < 1, a bad context, or vocabularies that the path does not
          take.
        """
        if tokens < 1:
            raise ValueError(f"tokens = {tokens}: expected at least 1")
        target.vocabulary.check(context, "context")
        pair = self.pair(target, drafter)
        pair.target.forwards.clear()
        pair.drafter.forwards.clear()
        text = generated(pair, context, tokens, rng)
        self.blocks = blocks(pair.target.forwards, len(context) + 1)
        self.forwards = len(pair.target.forwards), len(pair.drafter.forwards)
        return text

    def _pair(self, target: Model, drafter: Model) -> ToyPair:
        heat = None if self.greedy else self.temperature
        return toy_pair(
            self.path,
            target,
            drafter,
            lookahead=self.lookahead,
            temperature=heat,
            order=self.order,
        )
