"""What makes a rejected job fit, looked for beside its verdict: told at once when it is found in time, else at the next try."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from peakgate.client.errors import ServiceError
from peakgate.hooks.asking import BESIDE, Judgement, Judges, Service
from peakgate.hooks.cache import Cache
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict
from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.training_job_pb2 import TrainingJob

WAIT_SECONDS = 0.1
"""The controller is held up for so long; a search in structures that the service has seen takes half of it."""

SEARCH_SECONDS = 10.0
MOST_SEARCHES = 2
"""At a time: a flood of rejected jobs costs the service its verdicts before it costs it this."""


@dataclass(kw_only=True)
class Advisers:
    """Asks whoever judged."""

    judges: Judges
    wait_seconds: float = WAIT_SECONDS
    _found: Cache[Sequence[Suggestion]] = field(default_factory=lambda: Cache(entries=256, seconds=300.0))
    _searches: dict[bytes, asyncio.Task[None]] = field(default_factory=dict)

    async def advised(self, judgement: Judgement, job: TrainingJob) -> Judgement:
        """The judgement with suggestions, where they are found in time."""
        answer = judgement.answer
        if answer is None or answer.verdict != Verdict.VERDICT_REJECT or not judgement.is_brief:
            return judgement
        key = job.SerializeToString(deterministic=True)
        if self._found.get(key) is None and (search := self._search(key, judgement, job)) is not None:
            await asyncio.wait({search}, timeout=self.wait_seconds)
        found = self._found.get(key)
        if found is None:
            return judgement
        whole = PredictResponse()
        whole.CopyFrom(answer)
        whole.suggestions.extend(found)
        return replace(judgement, answer=whole, is_brief=False)

    async def close(self) -> None:
        """Ends the searches that run."""
        for search in tuple(self._searches.values()):
            search.cancel()
        await asyncio.gather(*self._searches.values(), return_exceptions=True)

    def _search(self, key: bytes, judgement: Judgement, job: TrainingJob) -> asyncio.Task[None] | None:
        """The search for a job, which outlives the submission that began it."""
        if (running := self._searches.get(key)) is not None:
            return running
        service = self._service(judgement)
        if service is None or len(self._searches) >= MOST_SEARCHES:
            return None
        search = asyncio.create_task(self._ask(key, service, job))
        self._searches[key] = search
        search.add_done_callback(lambda _: self._searches.pop(key, None))
        return search

    def _service(self, judgement: Judgement) -> Service | None:
        """Who judged; but a search takes the one processor of the service beside the hook, on which all verdicts rest while the real one
        is away."""
        if judgement.by == BESIDE:
            return self.judges.beside() if self.judges.service is None else None
        return self.judges.service

    async def _ask(self, key: bytes, service: Service, job: TrainingJob) -> None:
        try:
            answer = await service.predict(PredictRequest(job=job, validate_only=True), SEARCH_SECONDS)
        except ServiceError:
            return
        self._found.put(key, list(answer.suggestions))
