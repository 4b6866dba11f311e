"""An observation that was kept out and that a person vouches for: it is learned where it belongs, as if it had come late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from peakgate.calibration import Observation
from peakgate.server.classing import Kind
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.learning import Learner
from peakgate.server.margin import History
from peakgate.server.memory import MemoryModel
from peakgate.server.rebuild import Rebuilt, rebuilt
from peakgate.server.retell import Teller
from peakgate.server.store.base import Store
from peakgate.server.store.records import Lease, ObservationRow, ToldRow

LONGEST_WHO, LONGEST_WHY = 256, 1000
"""Characters that are kept of a name and of a reason."""


class Releaser:
    """Releases what was kept out. Its size and its user keep it out no longer; a figure that is no size still does."""

    def __init__(self, learner: Learner, store: Store, memory: MemoryModel) -> None:
        self._learner = learner
        self._store = store
        self._memory = memory

    async def release(self, prediction: str, *, job: str, restart: int | None, who: str, why: str) -> ObservationRow:
        """Learns an attempt that was kept out; returns its row. Raises PeakgateError when there is none, or nothing is learned of it."""
        if not why.strip():
            raise field_error("why", "is empty; say why this observation is right")
        stored = await asyncio.to_thread(self._store.prediction, prediction)
        if stored is None:
            raise PeakgateError("PREDICTION_NOT_FOUND", f"prediction: {prediction[:100]!r} is not known")
        content, row = stored.row.content, _chosen(stored.observations, prediction, job, restart)
        marked = replace(row, released_by=_one_line(who)[:LONGEST_WHO], released_why=_one_line(why)[:LONGEST_WHY])
        told = ToldRow(
            text=row.body,
            released=True,
            model_version=content.model_version,
            job_digest=content.job_digest,
            job_body=content.job,
            longest_sequence=row.longest_sequence,
        )
        await self._learner.alone(lambda lease: self._release(marked, told, lease))
        return marked

    def _release(self, row: ObservationRow, told: ToldRow, lease: Lease) -> None:
        learner = self._learner
        observation = self._observation(row, told)
        again = self._rebuilt(observation)
        outcome = again.outcomes.get(observation.prediction)
        if outcome is None or not outcome.learned:
            why = f"{outcome.reason}: {outcome.message}" if outcome is not None else "a figure of it is no size"
            raise PeakgateError("OBSERVATION_UNUSABLE", f"{row.prediction}: nothing can be learned of it all the same: {why}")
        note = f"released {row.prediction} (job {row.job}, {row.reason}) by {row.released_by or 'somebody'}: {row.released_why}"
        kept = replace(row, kind=Kind.EXACT if observation.exact else Kind.LOWER)
        new = learner.row_of(again.margin)
        new = replace(new, note="; ".join(filter(None, (note, new.note))))
        if not self._store.release(kept, new, expected_sequence=learner.sequence, lease=lease):
            text = f"{row.prediction}: it is not kept out any more, or a rollback has set it aside"
            raise PeakgateError("OBSERVATION_NOT_KEPT_OUT", text, hint="look at `peakgate calibration quarantine`, and ask again")

    def _observation(self, row: ObservationRow, told: ToldRow) -> Observation:
        if not row.body:
            raise PeakgateError(
                "OBSERVATION_UNUSABLE", f"{row.prediction}: {row.reason} says nothing of a need, so that nothing can be learned"
            )
        teller = Teller(self._memory, everything=self._learner.margin.history is History.RETOLD)
        observation = teller.observation(told)
        if observation is None:
            text = f"{row.prediction}: it was predicted by another memory model, of which the active calibration knows nothing"
            raise PeakgateError("OBSERVATION_UNUSABLE", text)
        return observation

    def _rebuilt(self, observation: Observation) -> Rebuilt:
        learner = self._learner
        again = rebuilt(self._store, learner.sequence, [observation], memory=self._memory, history=learner.margin.history)
        if again is None:
            raise AssertionError("without a reach there is always an ancestor")
        return again


def _one_line(text: str) -> str:
    return " ".join(text.replace("\x00", "").split())


def _chosen(rows: Sequence[ObservationRow], prediction: str, job: str, restart: int | None) -> ObservationRow:
    """The attempt that was kept out and is meant: the only one, where none is named."""
    named = [row for row in rows if (not job or row.job == job) and restart in (None, row.restart)]
    out = [row for row in named if not row.learned]
    if len(out) == 1:
        return out[0]
    if out:
        attempts = ", ".join(f"{row.job}/{row.restart}" for row in out)
        raise field_error("job", f"{prediction} has several attempts that were kept out, as job/restart: {attempts}; name one")
    if not named:
        raise PeakgateError("OBSERVATION_NOT_FOUND", f"{prediction[:100]}: no such attempt was observed")
    released = next((row for row in named if row.released), None)
    by = f"it was released before, by {released.released_by or 'somebody'}" if released is not None else "it was learned, and not kept out"
    raise PeakgateError("OBSERVATION_NOT_KEPT_OUT", f"{prediction[:100]}: {by}")
