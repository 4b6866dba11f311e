"""What is known of the cluster around workloads, listed again when it is old."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Protocol

from peakgate.client.connect import Client
from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.facts import Facts, claims_of, classes_of, devices_of, nodes_of
from peakgate.hooks.kubernetes.objects import Object, at, mapping_at

FRESH_SECONDS = 30.0
NEW_SECONDS = 1.0
"""Between two looks for a flavor that is not known."""

WAITS_SECONDS = (0.2, 1.0)
"""Before a list is asked for again: a workload that is judged without flavors goes on unchecked."""

Flavors = Mapping[str, Mapping[str, str]]


class Lists(Protocol):
    """Where lists come from. Each raises ApiError."""

    def kueue(self, plural: str) -> tuple[list[Object], str]:
        """Of a kind of Kueue."""

    def nodes(self) -> list[Object]:
        """The nodes."""

    def devices(self, plural: str) -> list[Object]:
        """Of a kind of dynamic resource allocation."""


class Known:
    """Facts and flavors, at most FRESH_SECONDS old. When a list fails the last one holds, and `failed` is told of it."""

    def __init__(
        self, lists: Lists, client: Client, *, nodes: bool, claims: bool, may_join: bool, failed: Callable[[ApiError], None]
    ) -> None:
        self._lists = lists
        self._client = client
        self._nodes = nodes
        self._claims = claims
        self._may_join = may_join
        self._failed = failed
        self._lock = Lock()
        self._facts = Facts()
        self._facts_at = self._flavors_at = float("-inf")
        self._flavors: Flavors | None = None
        self._catalogue: dict[str, int] = {}

    def facts(self) -> Facts:
        """Of the cluster; the flavor is each pod set's own. Without what cannot be listed."""
        with self._lock:
            if time.monotonic() - self._facts_at >= FRESH_SECONDS:
                try:
                    self._facts = self._listed()
                except ApiError as error:
                    self._failed(error)
                self._facts_at = time.monotonic()
            return self._facts

    def flavor(self, name: str) -> Mapping[str, str]:
        """The labels of a flavor; one that is not known is looked for again. Raises ApiError when flavors could never be listed."""
        with self._lock:
            age = time.monotonic() - self._flavors_at
            if age >= FRESH_SECONDS or (name and name not in (self._flavors or {}) and age >= NEW_SECONDS):
                self._list_flavors()
            return (self._flavors or {}).get(name, {})

    def _list_flavors(self) -> None:
        for wait in (*WAITS_SECONDS, None):
            try:
                items, _ = self._lists.kueue("resourceflavors")
            except ApiError as error:
                self._failed(error)
                if wait is None and self._flavors is None:
                    raise
                time.sleep(wait or 0.0)
                continue
            self._flavors = {str(at(each, "metadata", "name")): _texts(each, "spec", "nodeLabels") for each in items}
            break
        self._flavors_at = time.monotonic()

    def _listed(self) -> Facts:
        claims = self._lists.devices("resourceclaimtemplates") + self._lists.devices("resourceclaims") if self._claims else []
        classes = self._lists.devices("deviceclasses") if self._claims else []
        slices = self._lists.devices("resourceslices") if self._claims else None
        return Facts(
            nodes=nodes_of(self._lists.nodes()) if self._nodes else None,
            nodes_may_join=self._may_join,
            claims=claims_of(claims),
            classes=classes_of(classes),
            devices=devices_of(slices) if slices is not None else None,
            catalogue=self._cards(),
        )

    def _cards(self) -> Mapping[str, int]:
        """The catalogue does not change while the service runs; one that is away has none, and only shares of named cards need it."""
        if not self._catalogue:
            try:
                self._catalogue = {each.name: each.total_bytes for each in self._client.list_gpus().gpus}
            except PeakgateError:
                return {}
        return self._catalogue


def _texts(value: object, *keys: str) -> dict[str, str]:
    return {key: str(text) for key, text in mapping_at(value, *keys).items()}
