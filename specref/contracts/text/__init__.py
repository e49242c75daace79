"""The contract ``text``: engines that are asked for texts."""

from specref.contracts.text.contract import Engine, Text

__all__ = ["Engine", "Text"]
