"""Exact probing: the joint output distribution of somebody's code, without sampling error."""

from specref.conformance.probing.blocks import ProbedBlock, probe_block
from specref.conformance.probing.calls import Call
from specref.conformance.probing.edges import EdgeEvent, edge_events
from specref.conformance.probing.probe import Probed, probe
from specref.conformance.probing.verification import probe_verify

__all__ = [
    "Call",
    "EdgeEvent",
    "Probed",
    "ProbedBlock",
    "edge_events",
    "probe",
    "probe_block",
    "probe_verify",
]
