"""Exact probing: the joint output distribution of user code, without sampling error."""

from specref.probing.blocks import ProbedBlock, probe_block, probe_tokens
from specref.probing.edges import EdgeEvent, edge_events
from specref.probing.probe import Probed, probe, probe_verify
from specref.probing.source import Call

__all__ = [
    "Call",
    "EdgeEvent",
    "Probed",
    "ProbedBlock",
    "edge_events",
    "probe",
    "probe_block",
    "probe_tokens",
    "probe_verify",
]
