"""Device names of dynamic resource allocation -> GPU UUIDs, through the ResourceSlices of this node.

NVIDIA's driver publishes each GPU and each fixed MIG instance with the attribute `uuid` (kubernetes-sigs/dra-driver-nvidia-gpu,
cmd/gpu-kubelet-plugin/deviceinfo.go). In resource.k8s.io/v1 a device carries its attributes itself, in v1beta1 below `basic`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import cast
from urllib.parse import quote, urlencode

import structlog

from peakgate.agent.cluster_api import ClusterApi
from peakgate.agent.errors import ClusterApiError
from peakgate.agent.pod_devices import UUID

DRIVER = "gpu.nvidia.com"
VERSIONS = ("v1", "v1beta1")
PAGE_ITEMS = 100
"""Slices of one answer (cluster_api.MAX_ANSWER_BYTES)."""
MAX_PAGES = 50
"""A node has a few slices; a list that is longer is not one of this node."""
RETRY_SECONDS = 60.0
"""A device that is not known is asked for this often at most."""
MAX_AGE_SECONDS = 600.0
"""Older knowledge is read anew, and no longer used when that fails: a name may by then mean another GPU."""

Device = tuple[str, str]
Json = Mapping[str, object]

log = structlog.get_logger("peakgate.agent.resource_slices")


class ResourceSlices:
    """Knows the devices of one node; asks the API server when it must."""

    def __init__(self, *, api: ClusterApi, node: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._node = node
        self._clock = clock
        self._uuids: dict[Device, str] = {}
        self._asked = self._read_at = float("-inf")

    def uuid_of(self, driver: str, pool: str, device: str) -> str:
        """The GPU's UUID, or empty: another driver's device, not known, or not to be had now."""
        if driver != DRIVER:
            return ""
        now = self._clock()
        is_old = now - self._read_at >= MAX_AGE_SECONDS
        if (is_old or (pool, device) not in self._uuids) and now - self._asked >= RETRY_SECONDS:
            self._asked = now
            self._refresh(now)
        return self._uuids.get((pool, device), "") if now - self._read_at < MAX_AGE_SECONDS else ""

    def _refresh(self, now: float) -> None:
        try:
            slices = self._slices()
        except ClusterApiError as error:
            log.warning("resource slices not read", problem=str(error))
            return
        self._uuids, self._read_at = dict(_devices(slices)), now

    def _slices(self) -> list[Json]:
        for version in VERSIONS:
            slices = self._pages(f"/apis/resource.k8s.io/{version}/resourceslices")
            if slices is not None:
                return slices
        raise ClusterApiError(f"the API server has no resourceslices of {' or '.join(VERSIONS)}")

    def _pages(self, path: str) -> list[Json] | None:
        """All items; None where the API server does not know this version. Raises when a list that was begun does not come to its end."""
        items: list[Json] = []
        query = {"fieldSelector": f"spec.driver={DRIVER},spec.nodeName={self._node}", "limit": str(PAGE_ITEMS)}
        for page in range(MAX_PAGES):
            document = self._api.get(f"{path}?{urlencode(query, quote_via=quote)}")
            if document is None and page == 0:
                return None
            items += _objects((document or {}).get("items"))
            query["continue"] = str(_object((document or {}).get("metadata")).get("continue") or "")
            if document is not None and not query["continue"]:
                return items
        raise ClusterApiError(f"the list of resourceslices has no end after {MAX_PAGES} pages")


def _devices(slices: list[Json]) -> Iterator[tuple[Device, str]]:
    """The devices of each pool's newest generation: slices of an older one lie beside it while the driver updates the pool."""
    specs = [_object(each.get("spec")) for each in slices]
    newest: dict[str, int] = {}
    for spec in specs:
        pool, generation = _pool(spec)
        newest[pool] = max(generation, newest.get(pool, generation))
    for spec in specs:
        pool, generation = _pool(spec)
        if spec.get("driver") != DRIVER or generation != newest[pool]:
            continue
        for device in _objects(spec.get("devices")):
            yield (pool, str(device.get("name", ""))), _uuid(device)


def _pool(spec: Json) -> tuple[str, int]:
    pool = _object(spec.get("pool"))
    generation = pool.get("generation", 0)
    return str(pool.get("name", "")), generation if isinstance(generation, int) else 0


def _uuid(device: Json) -> str:
    attributes = _object(device.get("attributes") or _object(device.get("basic")).get("attributes"))
    attribute = _object(attributes.get("uuid") or attributes.get(f"{DRIVER}/uuid"))
    uuid = str(attribute.get("string", ""))
    return uuid if UUID.fullmatch(uuid) else ""


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Json]:
    return [_object(each) for each in value] if isinstance(value, list) else []
