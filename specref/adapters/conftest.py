"""Collects the doctests of files that need OpenVINO only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("openvino") else ["toy_openvino.py"]
