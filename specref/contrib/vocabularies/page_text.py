"""The text between the tables of the page on vocabularies."""

HEAD = """\
What Timor et al. 2025 print about vocabularies, counted again. Written by `{command}`. The
vocabularies are read from packages that carry them, and nothing of them is kept here: the figures
hold for files with these digests. `not_run` says what could not be had, and why. *Special* tokens
write no text. SentencePiece has both `A` and the byte `<0x41>`, which write the same bytes."""

OVERLAP = """\
By string, tokens are the same if the vocabulary files write the same; by bytes, if they write the
same bytes into a text. The printed counts are those by string, special tokens among them, to the
token. They compare how files are encoded as much as vocabularies: byte-level files write a space
as `Ġ` and SentencePiece as `▁`, so that no token with a space is shared. Strings can also be the
same where bytes are not (`¡` stands for two bytes in one file, for the byte A1 in the other): the
*mistaken* ones. *Named* is by bytes where a special token is taken to write its name: `<s>` is
special to one vocabulary and an ordinary text in another. Shares are of the target's tokens."""

ARTEFACT = """\
For {target} x {drafter}, {strings} is an artefact of the encoding: by bytes the
share is {spellings}."""

DECOMPOSITIONS = """\
The token sequences that spell a token of Qwen2, by string (of which a character stands for a
byte), special tokens among them. *Forwards* are the contexts at which the drafter's law is needed
for the masses of all: the inner nodes of the tree of decompositions, its root among them. They
are known beforehand, so that one forward with tree attention reads them together."""

WORD = """\
`{word}` has {count} decompositions of at most {bound} ({missing} is no token),
{forwards} forwards and n_max {n_max}. The paper has the same 14 and 16; it counts
one more than the nodes that are no leaves, which is right if the root is not taken for a node."""

TIES = """\
The paper prints these lengths, the quartiles 7, 15 and 56 and the maximum of
decompositions, and for their mean and standard deviation 144.31 and 880.98. Those depend on which
of the {tied} tokens of length {length} are among the {taken} that are taken, and no rule is
printed. By (length, id), as here, there are {sequences:,} decompositions together; other choices
have means from {least:.2f} to {most:.2f}. So mean and deviation test nothing before the rule is
known."""

REST = """\
The other {count:,} tokens, whose decompositions the authors report not to have counted in hours,
have {least:,} to {most:,} decompositions: {within:,} of them at most {limit:,}, and {huge}
more than 10^9. Counting takes length x longest token steps, however many there are. For
{longest:,} of all {tokens:,} tokens n_max is the length, and for {more:,} there are more forwards
than decompositions."""

ROUND_TRIPS = """\
Texts that differ in spaces, composition and case. *Returned*: decode(encode(s)) is s. *Confused*:
the ids are those of another text, so the tokeniser is not injective. A round trip of all texts
implies that none is confused, and not conversely: BOS spoils every round trip and confuses no
texts. What does confuse some is Qwen2's NFC, the space that LlamaTokenizer puts before a text, and
the `▁` that stands for a space. The classes are built from the tokens, with their own flags and
`add_bos_token`; special tokens are not skipped in decoding."""
