"""Folders of tiny random models, made once."""

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """{name: folder}: a target, a drafter with another vocabulary, and one with the target's."""
    from proofs_tests.contrib.real_models.tiny import save

    root = tmp_path_factory.mktemp("tiny-models")
    sizes = {"target": (300, 1), "drafter": (280, 2), "same": (300, 3)}
    return {name: save(root / name, *size) for name, size in sizes.items()}


@pytest.fixture(scope="session")
def pairs(folders):
    """{method: pair}: of two vocabularies, or of one."""
    from specref.contrib.real_models.loading import load
    from specref.contrib.real_models.pairs import paired

    target, drafter, same = (load(folders[name], name) for name in folders)
    two, one = paired(target, drafter), paired(target, same)
    return {**dict.fromkeys(two.methods, two), **dict.fromkeys(("standard", "block"), one)}
