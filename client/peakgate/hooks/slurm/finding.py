"""The job of a request: of a change the one that was judged before; else what the submit host attached, made sure of; else what is read."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from peakgate.client.imports.joined import UNCHECKED
from peakgate.client.source import LaunchText
from peakgate.hooks.asking import Judges
from peakgate.hooks.cache import Cache
from peakgate.hooks.slurm.attached import Attached, AttachedError, attached_job, is_of
from peakgate.hooks.slurm.reading import Read, read_submission, request_flags
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.hooks.slurm.wire import MODIFY, Request
from peakgate.v1.names import full_name
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse
from peakgate.v1.training_job_pb2 import TrainingJob

STAMP = re.compile(r"(?<!\S)peakgate=([0-9A-Za-z_-]{1,128})(?!\S)")
UNKNOWN = "the prediction that the job was admitted with is not known, or cannot be looked up now"
NEW_GPUS = "GPUs are added to a job that was admitted without any, and its script cannot be seen now; submit it anew"
WORDS_SECONDS = 0.03
"""A script is read so long for the words of a change alone: within what the gate has beside the service's deadline (gate.py)."""
TOO_SLOW = "the script takes too long to be read"


@dataclass(kw_only=True)
class Found:
    """`stored`: the prediction that somebody asked for before, of this very `job`. `read`: what the launch says, where it was read."""

    job: TrainingJob | None = None
    stored: GetPredictionResponse | None = None
    read: Read = field(default_factory=Read)


@dataclass(kw_only=True)
class Finder:
    """Reads in threads, so that a strange script holds up nobody else; equal submissions are read once."""

    judges: Judges
    tell: Callable[[str, str], None]
    _readings: Cache[Read] = field(default_factory=lambda: Cache(entries=256))
    _reader: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="read"))

    def close(self) -> None:
        """Ends the threads."""
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def find(self, request: Request, submission: Submission, attached: Attached) -> Found:
        """The job, or why there is none. Never raises."""
        if request.operation == MODIFY:
            return await self._before(request, submission)
        try:
            job = attached_job(attached, request.script or None) if attached.digest else None
        except AttachedError as error:
            self.tell("warning", f"uid {request.uid}: {error}; the script is read instead")
            return await self._of_script(request, submission, attached)
        stored = await self._stored(request, attached)
        if stored is not None:
            return Found(job=stored.job, stored=stored)
        return Found(job=job) if job is not None else await self._of_script(request, submission, attached)

    async def launch(self, request: Request, submission: Submission, attached: Attached) -> LaunchText | None:
        """The launch of a job that the submit host attached, for the words of a change; None where it cannot be seen whole, or in time."""
        if request.operation == MODIFY:
            return None
        read = (await self._of_script(request, submission, attached, seconds=WORDS_SECONDS)).read
        return None if read.is_partial else read.launch

    async def _stored(self, request: Request, attached: Attached) -> GetPredictionResponse | None:
        """The prediction of the submit host, when it is of the document that was attached."""
        if not attached.prediction or not attached.digest:
            return None
        stored = await self.judges.stored(attached.prediction)
        if stored is not None and not is_of(attached, stored.job):
            self.tell("warning", f"uid {request.uid}: {attached.prediction} is a prediction of another job")
            return None
        return stored

    async def _before(self, request: Request, submission: Submission) -> Found:
        match = STAMP.search(submission.admin_comment)
        if match is None and not submission_of(dict(request.record)).asks_for_gpus:
            return Found(read=Read(problem=NEW_GPUS))
        if match is None or match[1] == UNCHECKED:
            return Found()
        stored = await self.judges.stored(full_name(match[1]))
        return Found(job=stored.job, stored=stored) if stored is not None else Found(read=Read(problem=UNKNOWN))

    async def _of_script(self, request: Request, submission: Submission, attached: Attached, *, seconds: float | None = None) -> Found:
        key = (request.script, request.argv, attached.stated, *request_flags(submission))
        read = self._readings.get(key)
        if read is None:
            work = functools.partial(read_submission, submission, request.script, request.argv, attached.stated)
            limit = self.judges.deadline_seconds if seconds is None else seconds
            try:
                read = await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._reader, work), limit)
            except TimeoutError:
                return Found(read=Read(problem=TOO_SLOW))
            self._readings.put(key, read)
        return Found(job=read.job, read=read)
