"""What a job states that this version does not count: the answer is then UNDECIDED, never silently wrong.

One file a part of the job, one sentence for each thing, beginning with its field.
"""

from __future__ import annotations

from peakgate.memory.job import Job
from peakgate.memory.not_counted.adapters import of_adapters
from peakgate.memory.not_counted.checkpointing import of_checkpointing
from peakgate.memory.not_counted.method import of_method, of_phases
from peakgate.memory.not_counted.model import of_model
from peakgate.memory.not_counted.placement import of_placement
from peakgate.memory.not_counted.runtime import of_runtime
from peakgate.memory.not_counted.unread import of_unread
from peakgate.memory.plan import Plan

PARTS = (of_model, of_method, of_runtime, of_checkpointing, of_phases, of_adapters, of_placement, of_unread)


def not_counted(job: Job, plan: Plan) -> tuple[str, ...]:
    """Every sentence, in the order of the parts."""
    return tuple(sentence for part in PARTS for sentence in part(job, plan))
