"""What is known of the cluster around workloads, listed again when it is old."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Protocol

from peakgate.client.connect import Client
from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.facts import Facts, Object, at, devices_of, list_at, mapping_at, nodes_of
from peakgate.hooks.kubernetes.kueue.errors import ApiError

FRESH_SECONDS = 30.0
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
    """Facts and flavors, at most FRESH_SECONDS old; when a list fails the last one holds. `failed` is told of it."""

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
        self._kept: tuple[Facts, Flavors] = (Facts(), {})
        self._catalogue: dict[str, int] = {}
        self._at = float("-inf")

    def facts(self) -> Facts:
        """Of the cluster; the flavor is each pod set's own."""
        return self._current()[0]

    def flavors(self) -> Flavors:
        """Labels of each flavor by its name."""
        return self._current()[1]

    def _current(self) -> tuple[Facts, Flavors]:
        with self._lock:
            if time.monotonic() - self._at >= FRESH_SECONDS:
                try:
                    self._kept = self._listed()
                    self._at = time.monotonic()
                except ApiError as error:
                    self._failed(error)
            return self._kept

    def _listed(self) -> tuple[Facts, Flavors]:
        flavors = {
            str(at(each, "metadata", "name")): _texts(each, "spec", "nodeLabels") for each in self._lists.kueue("resourceflavors")[0]
        }
        claims = self._lists.devices("resourceclaimtemplates") + self._lists.devices("resourceclaims") if self._claims else []
        classes = self._lists.devices("deviceclasses") if self._claims else []
        slices = self._lists.devices("resourceslices") if self._claims else None
        facts = Facts(
            nodes=nodes_of(self._lists.nodes()) if self._nodes else None,
            nodes_may_join=self._may_join,
            claims={_claim_key(each): mapping_at(each, "spec", "spec") or mapping_at(each, "spec") for each in claims},
            classes={str(at(each, "metadata", "name")): _expressions(each) for each in classes},
            devices=devices_of(slices) if slices is not None else None,
            catalogue=self._cards(),
        )
        return facts, flavors

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


def _claim_key(claim: Object) -> str:
    return f"{at(claim, 'metadata', 'namespace')}/{at(claim, 'metadata', 'name')}"


def _expressions(kind: Object) -> list[str]:
    return [str(at(each, "cel", "expression") or "") for each in list_at(kind, "spec", "selectors")]
