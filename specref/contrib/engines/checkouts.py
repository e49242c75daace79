"""Functions of public repositories that are no packages, from clones that a user points at."""

import sys
from functools import partial
from types import ModuleType
from typing import Any

from specref.adapters.needs import FOLDER, NotInstalledError, clone, imported


def remedy(repository: str) -> str:
    """The commands that clone a repository to where it is looked for.

    * `repository`: ``OWNER/NAME``, or ``OWNER/NAME@COMMIT`` where later commits lack what is
      judged.

    >>> remedy("jaymody/speculative-sampling")
    'export SPECREF_GITHUB=${SPECREF_GITHUB:-~/clones} && \
git clone https://github.com/jaymody/speculative-sampling \
$SPECREF_GITHUB/jaymody/speculative-sampling'
    >>> remedy("a/b@0c1d").split(" && ")[2]
    'git -C $SPECREF_GITHUB/a/b@0c1d checkout 0c1d'
    """
    place, (whole, _, commit) = f"${FOLDER}/{repository}", repository.partition("@")
    checkout = f" && git -C {place} checkout {commit}" if commit else ""
    folder = f"export {FOLDER}=${{{FOLDER}:-~/clones}}"
    return f"{folder} && git clone https://github.com/{whole} {place}{checkout}"


def from_checkout(
    repository: str, module: str, *names: str, absent: tuple[str, ...] = (), under: str = ""
) -> Any:
    """What a module of a clone has under some names; nothing of it stays importable.

    Its top-level modules have names such as `utils`, which others have, too.

    * `absent`: ``MODULE.NAME`` that it imports and that no function called here needs: replaced by
      None.
    * `under`: The folder of the clone that `module` is in, if packages above it are not imported.
    """
    if not clone(repository).is_dir():
        raise NotInstalledError(f"{repository} is not cloned: {remedy(repository)}")
    folder = clone(repository) / under
    if not folder.is_dir():
        raise NotInstalledError(f"{repository} has no folder {under}")
    own = {path.stem for path in folder.iterdir()} | {one.split(".")[0] for one in absent}
    hidden = {name: sys.modules.pop(name) for name in [*sys.modules] if name.split(".")[0] in own}
    before = [*sys.path]
    sys.path.insert(0, str(folder))
    for one in absent:
        stand_in, _, name = one.rpartition(".")
        setattr(sys.modules.setdefault(stand_in, ModuleType(stand_in)), name, None)
    try:
        found = tuple(imported(module, name) for name in names)
        if hasattr(sys.modules[module], "tqdm"):  # no progress for each text
            bar = imported("tqdm", "tqdm")
            sys.modules[module].tqdm = partial(bar, disable=True)  # type: ignore[attr-defined]
    finally:
        sys.path[:] = before
        for name in [*sys.modules]:
            if name.split(".")[0] in own:
                del sys.modules[name]
        sys.modules.update(hidden)
    return found
