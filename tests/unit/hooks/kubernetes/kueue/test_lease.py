"""Who leads, on clocks of the test's own."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest

from peakgate.hooks.kubernetes.api_errors import CONFLICT, ApiError
from peakgate.hooks.kubernetes.kueue.lease import Lease


class Kept:
    """A Lease in memory."""

    def __init__(self) -> None:
        self.lease_: dict[str, object] = {"metadata": {"name": "l", "resourceVersion": "1"}}
        self.version = 1
        self.is_away = False

    def lease(self, namespace: str, name: str) -> Mapping[str, object]:
        """The Lease as it is."""
        if self.is_away:
            raise ApiError("away")
        return copy.deepcopy(self.lease_)

    def replace_lease(self, namespace: str, name: str, lease: Mapping[str, object]) -> Mapping[str, object]:
        """A new one, unless another came between."""
        metadata = lease["metadata"]
        assert isinstance(metadata, dict)
        if self.is_away:
            raise ApiError("away")
        if metadata["resourceVersion"] != str(self.version):
            raise ApiError("conflict", CONFLICT)
        self.version += 1
        self.lease_ = copy.deepcopy(dict(lease)) | {"metadata": metadata | {"resourceVersion": str(self.version)}}
        return self.lease_

    @property
    def spec(self) -> dict[str, object]:
        """What the Lease says."""
        spec = self.lease_["spec"]
        assert isinstance(spec, dict)
        return spec


class Clock:
    """Stands still until it is told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_lease(kept: Kept, clock: Clock, identity: str) -> Lease:
    """A replica's view."""
    return Lease(kept, namespace="n", name="l", identity=identity, clock=clock)


def test_the_first_leads_and_the_second_waits_for_its_silence() -> None:
    """A holder is gone when it has said nothing for its duration on the other's own clock, whatever its clock says."""
    kept, clock = Kept(), Clock()
    one, two = a_lease(kept, clock, "one"), a_lease(kept, clock, "two")
    assert (one.renew(), two.renew()) == (True, False)
    clock.now += 14
    assert (one.renew(), two.renew()) == (True, False)
    clock.now += 14
    assert not two.renew()
    clock.now += 1.1
    assert two.renew()
    assert not one.is_held
    assert (kept.spec["holderIdentity"], kept.spec["leaseTransitions"]) == ("two", 2)
    assert not one.renew()


def test_who_cannot_renew_steps_down_before_another_begins() -> None:
    """Ten seconds without an answer: it stops, five before the lease ends."""
    kept, clock = Kept(), Clock()
    one = a_lease(kept, clock, "one")
    assert one.renew()
    kept.is_away = True
    clock.now += 9
    with pytest.raises(ApiError):
        one.renew()
    assert one.is_held
    clock.now += 1.1
    assert not one.is_held


def test_a_lease_that_is_given_back_is_free_at_once() -> None:
    """A replica that stops does not make the other wait."""
    kept, clock = Kept(), Clock()
    one, two = a_lease(kept, clock, "one"), a_lease(kept, clock, "two")
    assert (one.renew(), two.renew()) == (True, False)
    one.release()
    assert (one.is_held, two.renew()) == (False, True)
    one.release()
    assert kept.spec["holderIdentity"] == "two"


def test_of_two_at_once_one_leads() -> None:
    """Both read a free lease: the version decides."""
    kept, clock = Kept(), Clock()
    one, two = a_lease(kept, clock, "one"), a_lease(kept, clock, "two")
    stale = kept.lease("n", "l")
    assert one.renew()
    read, kept.lease = kept.lease, lambda *_: stale  # type: ignore[method-assign]  # what the second had read before
    assert not two.renew()
    kept.lease = read  # type: ignore[method-assign]  # as it was
    assert one.renew()
