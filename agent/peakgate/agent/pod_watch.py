"""Asks the kubelet now and then which container holds which GPU, in a thread of its own: no call of it holds the sampler up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from peakgate.agent.errors import KubeletError
from peakgate.agent.gpu_numbers import GpuNumbers
from peakgate.agent.kubelet import Kubelet
from peakgate.agent.pace import jittered
from peakgate.agent.pod_devices import Holder, Holdings, holdings

PERIOD_SECONDS = 30.0
"""A pod holds its GPU for as long as it lives."""

log = structlog.get_logger("peakgate.agent.pod_watch")


def no_claims(_driver: str, _pool: str, _device: str) -> str:
    """Outside a cluster's pod the devices of claims have no names."""
    return ""


class PodWatch:
    """Remembers the kubelet's last answer, and forgets it as soon as the kubelet does not answer: who holds a GPU is then not known.

    The prediction of a pod is not in the answer: labels and annotations stay with the API server. It comes from PEAKGATE_PREDICTION in the
    pod's environment: its name, or the uid of the object under which the webhook had it stored (docs/webhook.md).
    """

    def __init__(
        self, *, kubelet: Kubelet, uuid_of: Callable[[str, str, str], str] = no_claims, period_seconds: float = PERIOD_SECONDS
    ) -> None:
        self._kubelet = kubelet
        self._uuid_of = uuid_of
        self._period_seconds = period_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pod-watch", daemon=True)
        self._holdings: Holdings | None = None
        self._problem = ""

    def start(self) -> None:
        """Begins to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and the connection; a call that hangs ends by its own time limit."""
        self._stop.set()
        self._kubelet.close()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Asks once."""
        try:
            self._holdings = holdings(self._kubelet.pods(), uuid_of=self._uuid_of)
        except KubeletError as error:
            self._holdings = None
            self._say(error.code, str(error))
        else:
            self._say("", "")

    def holders(self, gpu_uuid: str, numbers: GpuNumbers | None = None) -> tuple[Holder, ...] | None:
        """The containers that hold the GPU, which may be none; None: not known now."""
        known = self._holdings
        return known.of(gpu_uuid, numbers) if known else None

    def idle(self, gpus: Iterable[str], busy: Iterable[str]) -> dict[str, tuple[Holder, ...]]:
        """The GPUs that somebody holds and nobody uses, with their holders."""
        held = {gpu: self.holders(gpu) or () for gpu in set(gpus) - set(busy)}
        return {gpu: holders for gpu, holders in held.items() if holders}

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(jittered(self._period_seconds))

    def _say(self, problem: str, message: str) -> None:
        if problem != self._problem and not self._stop.is_set():
            log.warning("kubelet does not answer", problem=message) if problem else log.info("kubelet answers")
        self._problem = problem
