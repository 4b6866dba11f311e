"""Reasons not to trust the calibration that only the service can count: bounds at their limit, and nodes that went silent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from peakgate.calibration.trust import MOST_SILENT, reasons_of_service
from peakgate.server.assess import Assessor
from peakgate.server.clock import MICROSECONDS, Clock
from peakgate.server.judge import Judge
from peakgate.server.logs import Logger
from peakgate.server.metrics import Metrics
from peakgate.server.store.base import Store
from peakgate.server.store.records import RecentRow, Silence
from peakgate.server.subjects import subject_from

NEWEST_PREDICTIONS = 500
"""Looked at again in some hundredths of a second."""

MIN_JOBS = 50
"""Different jobs below which no share is made: with the limit of a tenth, six of them meet it, which one person's odd model can do."""

HOUR_US = 3600 * MICROSECONDS

REPORTING, SILENT = "reporting", "silent"

FORGOTTEN_HOURS = 24
"""A node that was not heard of for so long is no node that is waited for: it was switched off, or its agent is gone for good."""

BEGAN_HOURS = 48
"""What began earlier is not looked at: a table of a month's rows would be read for it. Silent and other nodes are missed alike."""

MIN_NODES = round(1 / MOST_SILENT)
"""With fewer one silent node would pass the limit: whoever stops the agent of a laptop for good is not told of it."""

SILENCE_EVERY_US = 600 * MICROSECONDS
"""Between counts of silent nodes, which read two days of rows."""


class Watch:
    """Counts, tells the judge, and shows both shares. All replicas count the same rows, so they come to trust and distrust alike."""

    def __init__(self, judge: Judge, store: Store, *, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self._judge = judge
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._told: tuple[str, ...] = ()
        self._silent_share = 0.0
        self._next_silence_us = 0
        self._show(Silence(nodes=0, silent=0))

    async def run(self) -> None:
        """Counts anew, silent nodes every ten minutes. Raises STORE_UNAVAILABLE, and then what was told holds on."""
        clamped_share = await asyncio.to_thread(self._clamped_share)
        if self._clock() >= self._next_silence_us:
            silence = await asyncio.to_thread(self._silence)
            self._show(silence)
            self._silent_share = silent_share(silence)
            self._next_silence_us = self._clock() + SILENCE_EVERY_US
        self._metrics.series("peakgate_calibration_clamped_ratio").set(clamped_share)
        self._metrics.series("peakgate_agents_silent_ratio").set(self._silent_share)
        self._tell(reasons_of_service(clamped_share=clamped_share, silent_share=self._silent_share))

    def _tell(self, told: tuple[str, ...]) -> None:
        if told != self._told:
            self._log.warning("calibration trust", reasons=" ".join(told), before=" ".join(self._told))
        self._told = told
        self._judge.tell(told)

    def _clamped_share(self) -> float:
        return clamped_share(self._store.recent(NEWEST_PREDICTIONS), self._judge.assessor)

    def _show(self, silence: Silence) -> None:
        for state, nodes in ((REPORTING, silence.nodes - silence.silent), (SILENT, silence.silent)):
            self._metrics.series("peakgate_agents", state=state).set(nodes)

    def _silence(self) -> Silence:
        now_us = self._clock()
        began_us, forgotten_us = now_us - BEGAN_HOURS * HOUR_US, now_us - FORGOTTEN_HOURS * HOUR_US
        return self._store.silence(began_us=began_us, forgotten_us=forgotten_us, silent_us=now_us - HOUR_US)


def clamped_share(rows: Iterable[RecentRow], assessor: Assessor) -> float:
    """Share of the different jobs whose bound meets its limit under the calibration of now; 0 with too few.

    The user with most of them does not count, so that nobody turns the calibration off alone. Textbook jobs have no bound to limit.
    """
    clamped: Counter[str] = Counter()
    jobs = 0
    for row in {each.job_digest: each for each in rows if each.subject}.values():
        subject = subject_from(row.subject)
        if subject.is_textbook:
            continue
        jobs += 1
        if assessor.bound(subject)[1].clamped:
            clamped[row.user] += 1
    if jobs < MIN_JOBS:
        return 0.0
    named = (count for user, count in clamped.items() if user)
    return (sum(clamped.values()) - max(named, default=0)) / jobs


def silent_share(silence: Silence) -> float:
    """Share of the nodes that owe news; 0 with too few nodes."""
    return silence.silent / silence.nodes if silence.nodes >= MIN_NODES else 0.0
