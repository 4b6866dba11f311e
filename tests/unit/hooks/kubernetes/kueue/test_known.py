"""What the controller knows of the cluster, and what it knows when a list fails."""

from __future__ import annotations

import pytest

from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.kueue import known
from peakgate.hooks.kubernetes.kueue.known import Known
from peakgate.hooks.kubernetes.objects import Object


class Lists:
    """Lists of the test's own; each name in `fails` is refused so often."""

    def __init__(self) -> None:
        self.flavors: list[Object] = []
        self.fails: dict[str, int] = {}
        self.asked: list[str] = []

    def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.fails.get(what, 0):
            self.fails[what] -= 1
            raise ApiError("forbidden", 403)

    def kueue(self, plural: str) -> tuple[list[Object], str]:
        """Flavors."""
        self._asked(plural)
        return self.flavors, "1"

    def nodes(self) -> list[Object]:
        """One node."""
        self._asked("nodes")
        return [{"metadata": {"name": "n", "labels": {"a": "b"}}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]

    def devices(self, plural: str) -> list[Object]:
        """A claim template, and nothing else."""
        self._asked(plural)
        claim = {"metadata": {"name": "c", "namespace": "n"}, "spec": {"spec": {"devices": {"requests": []}}}}
        return [claim] if plural == "resourceclaimtemplates" else []


class NoService:
    """A service that is away."""

    def list_gpus(self) -> None:
        """Never answers."""
        raise PeakgateError("away", code="UNAVAILABLE", reason="R")


def a_known(lists: Lists, failed: list[int]) -> Known:
    """Everything is looked at."""
    service = NoService()
    return Known(lists, service, nodes=True, claims=True, may_join=False, failed=lambda error: failed.append(error.status))  # type: ignore[arg-type]  # as far as it is used


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not sleep."""
    monkeypatch.setattr(known, "WAITS_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(known, "NEW_SECONDS", 0.0)


def test_facts_are_listed_once_and_kept() -> None:
    """Nodes, claims by namespace and name, and no catalogue while the service is away."""
    lists, failed = Lists(), list[int]()
    found = a_known(lists, failed)
    facts = [found.facts(), found.facts()][-1]
    assert facts.nodes is not None
    assert [(each.name, each.has) for each in facts.nodes] == [("n", {"nvidia.com/gpu": "8"})]
    assert list(facts.claims) == ["n/c"]
    assert facts.catalogue == {}
    assert lists.asked.count("nodes") == 1


def test_a_flavor_that_is_new_is_found_at_once() -> None:
    """It was made after the last look."""
    lists = Lists()
    found = a_known(lists, [])
    assert found.flavor("h100") == {}
    lists.flavors = [{"metadata": {"name": "h100"}, "spec": {"nodeLabels": {"a": "b"}}}]
    assert found.flavor("h100") == {"a": "b"}


def test_nodes_that_may_not_be_listed_cost_only_themselves() -> None:
    """A role without nodes: flavors still tell."""
    lists, failed = Lists(), list[int]()
    lists.fails = {"nodes": 9}
    lists.flavors = [{"metadata": {"name": "h100"}, "spec": {"nodeLabels": {"a": "b"}}}]
    found = a_known(lists, failed)
    assert found.facts().nodes is None
    assert found.flavor("h100") == {"a": "b"}
    assert failed == [403]


def test_flavors_that_fail_once_are_asked_for_again() -> None:
    """Three times in all; then whoever waits is told, and the workload goes on unchecked."""
    lists, failed = Lists(), list[int]()
    lists.fails = {"resourceflavors": 2}
    a_known(lists, failed).flavor("h100")
    assert failed == [403, 403]
    lists.fails = {"resourceflavors": 3}
    with pytest.raises(ApiError):
        a_known(lists, failed).flavor("h100")


def test_flavors_that_were_known_hold_while_lists_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last list is better than none."""
    lists = Lists()
    lists.flavors = [{"metadata": {"name": "h100"}, "spec": {"nodeLabels": {"a": "b"}}}]
    found = a_known(lists, [])
    assert found.flavor("h100") == {"a": "b"}
    monkeypatch.setattr(known, "FRESH_SECONDS", 0.0)
    lists.fails = {"resourceflavors": 3}
    assert found.flavor("h100") == {"a": "b"}
