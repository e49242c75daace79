"""The contract ``text``: engines that are asked for texts."""
