"""Folders of tiny random models, made once."""

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """{name: folder}: a target, a drafter with another vocabulary, and one with the target's."""
    from proofs_tests.contrib.real_models.tiny import save

    root = tmp_path_factory.mktemp("tiny-models")
    sizes = {"target": (300, 1), "drafter": (280, 2), "same": (300, 3)}
    return {name: save(root / name, *size) for name, size in sizes.items()}
