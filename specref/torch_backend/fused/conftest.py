"""Collects the doctests of files that need Triton only where it is installed."""

from importlib.util import find_spec

NEEDS_TRITON = ("__init__", "kernels", "interpreted")
collect_ignore = [] if find_spec("triton") else [f"{name}.py" for name in NEEDS_TRITON]
