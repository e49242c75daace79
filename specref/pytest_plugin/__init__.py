"""The pytest plugin: options, and the hooks of `judging` if a test needs them.

pytest loads it wherever specref is installed, so it imports the kit only for runs that use it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `import specref` lists `parametrize` where pytest is missing, too
    import pytest

MARK = "specref"
OPTIONS = {
    "seed": ("N", "seed of everything random (default: 0)"),
    "profile": ("NAME", "quick (the default), standard or thorough: the distance to detect"),
    "expected": ("FILE", "expected failures as TOML, with id, reason, url and until"),
}


def pytest_addoption(parser: "pytest.Parser") -> None:
    """Add the options, and their counterparts in configuration files."""
    group = parser.getgroup("specref", "specref: lossless speculative decoding")
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--specref-{name}", metavar=metavar, help=text)
        parser.addini(f"specref_{name}", text, default="")
    parser.addini("specref_inconclusive", "what an undecided check does: fail or skip", default="")


def pytest_configure(config: "pytest.Config") -> None:
    """Load the other hooks if an option is given: a wrong one ends the run."""
    config.addinivalue_line("markers", f"{MARK}: made by specref.parametrize")
    names = [f"specref_{name}" for name in OPTIONS]
    given = [config.getoption(name) for name in names] + [config.getini(name) for name in names]
    if any(given) or config.getini("specref_inconclusive"):
        loaded(config)


def pytest_generate_tests(metafunc: "pytest.Metafunc") -> None:
    """Load the other hooks at the first test that needs them."""
    if any(metafunc.definition.iter_markers(MARK)):
        loaded(metafunc.config).make_items(metafunc)


def loaded(config: "pytest.Config") -> Any:
    """The module with the other hooks, registered."""
    from specref.pytest_plugin import judging

    if not config.pluginmanager.is_registered(judging):
        config.pluginmanager.register(judging)
    return judging
