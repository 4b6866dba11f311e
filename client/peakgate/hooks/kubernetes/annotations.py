"""Annotations and labels by which a workload, its namespace or an AdmissionCheck speaks with peakgate."""

from __future__ import annotations

from peakgate.readers.manifests.own_words import PREFIX
from peakgate.readers.stated import SPEC

MODE, OVERRIDE, TRY, PREDICTION, RELEASE = (PREFIX + word for word in ("mode", "override", "try", "prediction", "release"))
OWN_WORDS = f"state the job in the annotation {SPEC}"
"""What helps an object that does not say what it trains."""
