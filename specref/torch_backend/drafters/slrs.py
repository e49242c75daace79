"""String-level rejection sampling (SLRS): Timor et al. 2025, Algorithm 3, for byte drafters.

The drafter writes bytes until the longest target token that starts them is determined: until
they leave the prefix tree of the target's vocabulary, or the text ends. That token is the
draft. Its law is a push-forward of the drafter's: with R(s) the probability that the drafted
bytes start with s,

    psi(t) = R(t) - sum of R(t') over the nearest tokens t' that t is a proper prefix of,

which is added up here without subtraction, as the probability to leave the tree at a node
whose longest token is t. It takes the drafter's law at every inner node of the tree.

One iteration repeats this for each of its draft tokens, with fresh bytes after the tokens
drafted so far: bytes written past t_1 are dropped. So t_k has the law psi(. | context t_<k),
which is declared; and verification is lossless for drafts from any declared laws of this form.
(The bytes that were dropped may be those that showed that t_1 is not longer. To keep them, psi
of t_2 would have to be conditioned on that event. It is lossless without, and accepts less
where the drafter would have gone on with a longer token.)
"""

from collections.abc import Sequence

from torch import Tensor

from specref.torch_backend.drafters.byte_laws import END, ByteLaws
from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.drafters.mapped import inverse
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.sending import sent
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE
from specref.torch_backend.vocabularies.contexts import Reader, windowed
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map
from specref.torch_backend.vocabularies.trie import ByteTrie


class SlrsDrafter:
    """Drafts the target tokens that a byte-level drafter's text starts with, and declares psi.

    Parameters
    ----------
    model : TreeModel
        The drafter, each of whose tokens is one byte or special.
    target, drafter : TokenVocabulary
        Where several target tokens have the same bytes, text becomes that of `by_bytes`.
    shape : callable
        From the drafter's logits to the law of the next byte: temperature, top-k and top-p act
        on bytes.
    nodes_per_forward : int
        How many nodes of the tree are read in one forward, for every row of the batch; its mask
        has (context + nodes) x nodes entries for each row.

    Raises
    ------
    ValueError
        A token of the drafter spells other than one byte: use `LazySlrsDrafter`.

    Notes
    -----
    The cost is high. Each drafted token takes one forward of what is new of the contexts, and
    those of the tree: every inner node, by tree attention, for all rows at once. For a
    byte-level BPE of 2,048 tokens that is about 2,200 nodes, for each of the lookahead's
    tokens. `LazySlrsDrafter` reads far less.

    EOS of the drafter where a token would start is EOS of the target; anywhere else it ends the
    token before it. What starts no token of the target is ``OUTSIDE``, and so are the drafter's
    other special tokens.
    """

    def __init__(
        self,
        model: TreeModel,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shape: Shape,
        nodes_per_forward: int = 512,
    ) -> None:
        self.model, self.target, self.drafter = model, target, drafter
        self.trie = ByteTrie(target.by_bytes, model.device)
        self._laws = ByteLaws(model, drafter, self.trie, shape, nodes_per_forward)
        self._read = Reader(target, drafter, inverse(id_map(target, drafter), drafter))

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        """Draft up to `lookahead` target tokens for every row, with their laws psi.

        A row ends with EOS or with text that is no token of the target; after that its tokens
        are ``NO_DRAFT`` and its laws 0.

        Raises
        ------
        ValueError
            The drafter's logits are not of its vocabulary's size.
        """
        shape, depth = (len(contexts), lookahead), self.trie.depth
        coins = uniforms(seeds.to(self.model.device), iteration, DRAFT, lookahead * depth)
        laws = coins.new_zeros((*shape, len(self.target)))
        texts, live, before = self._read(contexts), list(range(shape[0])), self.model.forwards
        drafted: list[list[int]] = [[] for _ in contexts]
        room = self.model.positions + 1 - max(1, depth)
        for k, column in enumerate(coins.view(*shape, depth).unbind(1)):
            if not live:
                break
            byte_laws = self._laws([windowed(ids, room) for ids in texts])
            going = []
            for row in live:
                laws[row, k] = psi(self.trie, byte_laws[row], len(self.target), self.target.eos)
                token = first_token(self.trie, byte_laws[row], column[row], self.target.eos)
                drafted[row].append(token)
                piece = self.target.spelled[token] if token >= 0 else None
                if piece is not None:
                    texts[row] = texts[row] + self.drafter.spell(piece)[0]
                    going.append(row)
            live = going
        padded = [row + [NO_DRAFT] * (lookahead - len(row)) for row in drafted]
        return Drafts(sent(padded, coins.device), laws, self.model.forwards - before)

    def select(self, rows: Sequence[int]) -> None:
        self._read.select(rows)
        self._laws.select(rows)


def psi(trie: ByteTrie, byte_laws: Tensor, size: int, eos: int | None = None) -> Tensor:
    """The law of the longest token that starts a drafted text: Timor et al. 2025, Theorem 3.2.

    Parameters
    ----------
    trie : ByteTrie
        Of the target's vocabulary.
    byte_laws : Tensor of float64, shape (R, 258)
        The law of the next byte, END or OTHER at each inner node.
    size : int
        How many ids the target has.
    eos : int, optional
        The target's token for a text that ends at once.

    Returns
    -------
    Tensor of float64, shape (size,)
        Sums to 1 less the probability that no token starts the text.

    Examples
    --------
    >>> import torch
    >>> trie = ByteTrie({b"a": 0, b"ab": 1})
    >>> laws = torch.zeros(2, 258, dtype=torch.float64)
    >>> laws[:, ord("a")], laws[:, ord("b")], laws[:, END] = 0.5, 0.25, 0.25
    >>> psi(trie, laws, size=3, eos=2)
    tensor([0.3750, 0.1250, 0.2500], dtype=torch.float64)
    """
    above = trie.rows[trie.parents]
    steps = byte_laws[above, trie.symbols]
    reached = byte_laws.new_ones(len(trie.prefixes))
    for level in trie.levels[1:]:
        edges = slice(level.start - 1, level.stop - 1)
        reached[level] = reached[trie.parents[edges]] * steps[edges]
    leaving = byte_laws.clone()
    leaving.index_put_((above, trie.symbols), leaving.new_zeros(()))
    left = reached.clone()
    left[trie.inner] *= leaving.sum(dim=1)
    law = byte_laws.new_zeros(size + 1).index_add_(0, trie.owners % (size + 1), left)
    if eos is not None:
        law[eos] += byte_laws[0, END]
    return law[:size]


def first_token(trie: ByteTrie, byte_laws: Tensor, coins: Tensor, eos: int | None = None) -> int:
    """Draw bytes until they leave the tree: the longest token that starts them, or OUTSIDE.

    Parameters
    ----------
    trie, byte_laws, eos
        As for `psi`, which is its law.
    coins : Tensor of float64, shape (trie.depth,)
        Uniforms in [0, 1), one for each byte.

    Examples
    --------
    >>> import torch
    >>> trie = ByteTrie({b"a": 0, b"ab": 1})
    >>> laws = torch.zeros(2, 258, dtype=torch.float64)
    >>> laws[:, ord("a")], laws[:, ord("b")] = 0.5, 0.5
    >>> [first_token(trie, laws, torch.tensor(coins)) for coins in ([0.1, 0.2], [0.1, 0.9])]
    [0, 1]
    """
    # At every node, by the coin of its depth: the host waits once.
    symbols = draw(byte_laws, coins[trie.depths]).tolist()
    if symbols[0] == END and eos is not None:
        return eos
    text = b""
    while text in trie.places and (symbol := symbols[trie.places[text]]) < END:
        if text + bytes([symbol]) not in trie.nodes:
            break
        text += bytes([symbol])
    token = trie.longest(text)
    return OUTSIDE if token is None else trie.tokens[token]
