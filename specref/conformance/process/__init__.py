"""Samplers in other languages: programs that answer JSON lines (docs/runner-contract.md)."""

from specref.conformance.process.errors import CannotStartError, EndedError, SamplerError
from specref.conformance.process.process import Process

__all__ = ["CannotStartError", "EndedError", "Process", "SamplerError"]
