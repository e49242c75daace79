"""Samplers in other languages: programs that answer JSON lines (docs/other-languages.md)."""

from specref.process.messages import CannotStartError, EndedError, SamplerError
from specref.process.process import Process

__all__ = ["CannotStartError", "EndedError", "Process", "SamplerError"]
