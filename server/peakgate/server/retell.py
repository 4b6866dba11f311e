"""What was observed, told again: by the memory model and the keys of today, whichever they were when the job was predicted.

The ends of a need do not depend on a prediction, so that only the job is predicted anew. A memory model gives equal jobs equal figures:
what is told again is the same each time, and a margin that learned it can be made again like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from peakgate.calibration import Observation, Subject
from peakgate.calibration.calibrator import KEYS_FORMAT
from peakgate.memory.prediction import JobError
from peakgate.server.convert import job_from_message
from peakgate.server.lengths import at_length
from peakgate.server.memory import MemoryModel
from peakgate.server.store.records import ToldRow
from peakgate.server.subjects import format_of, observation_from, subject_of
from peakgate.v1.training_job_pb2 import TrainingJob

Told = tuple[str, int]
"""Digest of a job, and the longest sequence of an attempt; 0: nobody saw it."""


class Teller:
    """Makes observations of stored rows. `everything`: also of those that were predicted otherwise; else they are left out."""

    def __init__(self, memory: MemoryModel, *, everything: bool = False) -> None:
        self.memory = memory
        self.everything = everything
        self.retold = self.left_out = 0
        """Rows that were predicted anew, and that could not be."""
        self._subjects: dict[Told, Subject | None] = {}

    @property
    def epoch(self) -> str:
        """The memory model's version."""
        return self.memory.version

    def observations(self, rows: Iterable[ToldRow]) -> Iterator[Observation]:
        """Those that can be told, in no order."""
        return (found for found in map(self.observation, rows) if found is not None)

    def observation(self, row: ToldRow) -> Observation | None:
        """One of them; None when it is left out."""
        observation = replace(observation_from(row.text), released=row.released)
        if row.model_version == self.memory.version and format_of(row.text) == KEYS_FORMAT:
            return observation
        return self._again(row, observation) if self.everything else None

    def _again(self, row: ToldRow, observation: Observation) -> Observation | None:
        subject = self._subject(row, is_exact=observation.exact)
        if subject is None:
            self.left_out += 1
            return None
        self.retold += 1
        return replace(observation, subject=replace(subject, user=observation.subject.user))

    def _subject(self, row: ToldRow, *, is_exact: bool) -> Subject | None:
        """As `observe` finds it: a capped length is that of the data where the need is known, and stays the cap of a lower end."""
        key = row.job_digest, row.longest_sequence if is_exact else 0
        if key not in self._subjects:
            self._subjects[key] = self._predicted(row.job_body, key[1])
        return self._subjects[key]

    def _predicted(self, job_body: bytes, longest_sequence: int) -> Subject | None:
        try:
            shorter = at_length(self.memory, job_body) if longest_sequence else None
            if shorter is not None and (found := shorter(longest_sequence)) is not None:
                return found
            job = job_from_message(TrainingJob.FromString(job_body))
            return subject_of(self.memory.predict(job), job, self.memory.capacity_of(job))
        except JobError:
            return None  # such as a model that has gone from the catalogue
