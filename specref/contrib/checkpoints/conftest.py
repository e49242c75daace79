"""Collects the doctests of a file that needs OpenVINO only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("openvino") else ["openvino_parts.py"]
