"""Diagnosis of a failed sampler: likelihoods of its blocks under the exact laws of the zoo."""

from specref.conformance.diagnosis.laws import Laws, Observed
from specref.conformance.diagnosis.ranking import Candidate, Diagnosis, diagnose, unnamed

__all__ = ["Candidate", "Diagnosis", "Laws", "Observed", "diagnose", "unnamed"]
