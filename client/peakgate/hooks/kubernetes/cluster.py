"""What a workload names and is not in it, read from the API server: config maps, a training runtime, claims of devices with the classes
that these name, its namespace's labels.

Only what permissions.py lists is asked for. Nothing here raises: what cannot be read in time is left out, and the job is then read in part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from peakgate.hooks.cache import Cache
from peakgate.hooks.kubernetes.annotations import MODE
from peakgate.hooks.kubernetes.claims import classes_named
from peakgate.hooks.kubernetes.facts import CLASS, claims_of
from peakgate.hooks.kubernetes.objects import Object, text_at
from peakgate.hooks.kubernetes.references import claims_named, maps_of, runtime_of

READ_SECONDS = 0.4
"""For all that one workload names; the API server waits for the answer meanwhile."""

KEPT_SECONDS = 30.0
MOST_CLASSES = 8


class Api(Protocol):
    """Reads of the API server. None: it is not there, or may not be read, or not in time."""

    def config_map(self, namespace: str, name: str) -> Object | None:
        """One of core/v1."""

    def runtime(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of trainer.kubeflow.org; `namespace` is empty for one of the cluster."""

    def claim(self, namespace: str, kind: str, name: str) -> Object | None:
        """A claim of devices, or a template of one, of resource.k8s.io."""

    def device_class(self, name: str) -> Object | None:
        """One of resource.k8s.io."""

    def namespace(self, name: str) -> Object | None:
        """One of core/v1."""


class Cluster(Protocol):
    """What is known of the cluster beside the object under review. Nothing raises; what is not known in time is left out."""

    async def named_by(self, workload: Object) -> Sequence[Object]:
        """Config maps and the training runtime that a workload names."""

    async def modes_of(self, namespace: str) -> Sequence[str]:
        """What the namespace's own label wishes for."""


@dataclass(frozen=True, slots=True)
class NoCluster:
    """A webhook that may not read the cluster."""

    async def named_by(self, workload: Object) -> Sequence[Object]:  # noqa: ARG002 - a form of Cluster
        """Nothing."""
        return ()

    async def modes_of(self, namespace: str) -> Sequence[str]:  # noqa: ARG002 - a form of Cluster
        """Nothing."""
        return ()


@dataclass(kw_only=True)
class ApiCluster:
    """Reads in threads of its own, and keeps what it read for half a minute."""

    api: Api
    executor: Executor
    tell: Callable[[str, str], None]
    _kept: Cache[tuple[Object, ...]] = field(default_factory=lambda: Cache(entries=1024, seconds=KEPT_SECONDS, clock=time.monotonic))

    async def named_by(self, workload: Object) -> Sequence[Object]:
        """Config maps, the training runtime and the claims that a workload names, as far as they can be read."""
        namespace = text_at(workload, "metadata", "namespace")
        calls = [self._one(("map", namespace, name), _call(self.api.config_map, namespace, name)) for name in maps_of(workload)]
        calls += [self._claim(namespace, kind, name) for kind, name in claims_named(workload)]
        if (runtime := runtime_of(workload)) is not None:
            kind, name = runtime
            place = "" if kind.startswith("Cluster") else namespace
            calls.append(self._runtime(place, kind, name, namespace))
        return [each for found in await self._all(calls) for each in found]

    async def modes_of(self, namespace: str) -> Sequence[str]:
        """What the namespace's own label wishes for."""
        if not namespace:
            return ()
        found = await self._all([self._one(("namespace", namespace), _call(self.api.namespace, namespace))])
        return [text_at(each, "metadata", "labels", MODE) for one in found for each in one]

    async def _runtime(self, place: str, kind: str, name: str, namespace: str) -> tuple[Object, ...]:
        """A training runtime, and the claims of its pods, which are made where the workload is."""
        found = await self._one(("runtime", place, name), _call(self.api.runtime, place, kind, name))
        claims = await asyncio.gather(*(self._claim(namespace, *each) for runtime in found for each in claims_named(runtime)))
        return (*found, *(each for one in claims for each in one))

    async def _claim(self, namespace: str, kind: str, name: str) -> tuple[Object, ...]:
        """A claim, and the classes that it names."""
        found = await self._one((kind, namespace, name), _call(self.api.claim, namespace, kind, name))
        names = classes_named(claims_of(found))[:MOST_CLASSES]
        classes = await asyncio.gather(*(self._one((CLASS, each), _call(self.api.device_class, each)) for each in names))
        return (*found, *(each for one in classes for each in one))

    async def _all(self, calls: Sequence[Coroutine[None, None, tuple[Object, ...]]]) -> list[tuple[Object, ...]]:
        waiting = [asyncio.ensure_future(each) for each in calls]
        if not waiting:
            return []
        _, late = await asyncio.wait(waiting, timeout=READ_SECONDS)
        if late:
            self.tell("error", "the API server is slow: a workload is read without what it names")
        return [task.result() for task in waiting if task.done()]

    async def _one(self, key: Hashable, call: Callable[[], Object | None]) -> tuple[Object, ...]:
        if (kept := self._kept.get(key)) is not None:
            return kept
        found = await asyncio.get_running_loop().run_in_executor(self.executor, call)
        result = () if found is None else (found,)
        self._kept.put(key, result)
        return result


def _call(read: Callable[..., Object | None], *arguments: str) -> Callable[[], Object | None]:
    return lambda: read(*arguments)
