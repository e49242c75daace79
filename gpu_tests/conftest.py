"""The same tests on a CPU and on CUDA; what cannot run here is skipped as not_run, and counted."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from gpu_tests.sizes import PRETENDED

if TYPE_CHECKING:
    from gpu_tests.lab import Lab

MISSING = [name for name in ("torch", "transformers") if find_spec(name) is None]
# Without these only test files can be imported; the plugin settles how Triton makes all kernels.
collect_ignore_glob = ["[!t]*.py"] if MISSING else ["pretended.py"]


@pytest.fixture(scope="session", params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    """Each device in turn."""
    return str(request.getfixturevalue("cuda") if request.param == "cuda" else request.param)


@pytest.fixture(scope="session")
def cuda(pytestconfig: pytest.Config) -> str:
    """For what has a meaning on CUDA only; pretended with the plugin for that."""
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

    if pytestconfig.pluginmanager.has_plugin("gpu_tests.pretended"):
        return PRETENDED
    if not torch.cuda.is_available():
        pytest.skip("not_run (no CUDA)")
    return "cuda"


@pytest.fixture(scope="session")
def gpu(cuda: str) -> str:
    """For what only a GPU shows: memory, its kernels, what its driver does."""
    if cuda == PRETENDED:
        pytest.skip("not_run (the device is pretended)")
    return cuda


@pytest.fixture(scope="session")
def lab(device: str) -> Iterator["Lab"]:
    """The trained pairs on a device, and what was generated with them."""
    from gpu_tests.lab import Lab
    from gpu_tests.pairs import card_entries
    from specref.contracts.process_state import one_thread

    if not card_entries():
        pytest.skip("not_run (fixtures/models is not built)")
    with one_thread():
        yield Lab(device)


@pytest.fixture
def figure(record_property: Callable[[str, object], None], device: str) -> Callable[[str], None]:
    """Say what was measured; it is printed at the end."""
    return lambda text: record_property("figure", f"{device}: {text}")


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Print the figures that tests gave, those of passed tests as well."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    figures = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
    for figure in figures:
        terminalreporter.write_line(str(figure))
