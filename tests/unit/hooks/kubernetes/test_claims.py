"""GPUs by claims of devices."""

from __future__ import annotations

import pytest
from tests.unit.hooks.kubernetes.pods import a_pod
from tests.unit.hooks.kubernetes.test_gpus import CATALOGUE, told

from peakgate.hooks.kubernetes.facts import Facts, devices_of
from peakgate.hooks.kubernetes.gpus import cards_of

CAPACITY = "device.capacity['gpu.nvidia.com'].memory"


def a_claim(*requests: object) -> dict[str, object]:
    """A ResourceClaimTemplate's spec of a spec."""
    return {"devices": {"requests": list(requests)}}


def a_request(*expressions: str, kind: str = "gpu.nvidia.com", **more: object) -> dict[str, object]:
    """A request as v1beta1 writes it."""
    return {"name": "gpu", "deviceClassName": kind, "selectors": [{"cel": {"expression": each}} for each in expressions], **more}


PODS = a_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "c"}])
# Devices as NVIDIA's driver published them: kubernetes-sigs/dra-driver-nvidia-gpu#719 (two whole A100s, and a slice's form).
SLICES = [
    {
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "aks-gpupool-15127565-vmss000002",
            "devices": [
                {
                    "name": "gpu-1",
                    "attributes": {"productName": {"string": "NVIDIA A100 80GB PCIe"}, "type": {"string": "gpu"}},
                    "capacity": {"memory": {"value": "80Gi"}},
                },
                {
                    "name": "gpu-0-mig-2g.10gb-0",
                    "basic": {
                        "attributes": {
                            "productName": {"string": "Mock NVIDIA A100-SXM4-40GB"},
                            "type": {"string": "mig"},
                            "profile": {"string": "2g.10gb"},
                        },
                        "capacity": {"memory": {"value": "9856Mi"}},
                    },
                },
            ],
        }
    }
]


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        (a_request(count=4), [("a100-80gb", 81920, 4)]),
        ({"name": "g", "exactly": a_request(count=2)}, [("a100-80gb", 81920, 2)]),
        (a_request(kind="mig.nvidia.com"), [("a100-40gb/2g.10gb", 9856, 1)]),
        (a_request(f"{CAPACITY}.compareTo(quantity('40Gi')) >= 0"), [("a100-80gb", 81920, 1)]),
        (a_request("device.attributes['gpu.nvidia.com'].type == 'mig'", kind="any.example.com"), [("a100-40gb/2g.10gb", 9856, 1)]),
        (a_request("device.attributes['gpu.nvidia.com'].productName.matches('A100')"), [("a100-80gb", 81920, 1)]),
    ],
)
def test_published_devices_are_the_candidates(request_: dict[str, object], want: list[tuple[str, int, int]]) -> None:
    """Count from the template, memory from the device's capacity, both forms of the API."""
    assert told(cards_of(PODS, Facts(claims={"c": a_claim(request_)}, devices=devices_of(SLICES), catalogue=CATALOGUE))) == want


@pytest.mark.parametrize(
    ("request_", "want", "want_least"),
    [
        (a_request(f"{CAPACITY}.compareTo(quantity('40Gi')) >= 0", count=8), [("", 40960, 8)], True),
        (a_request(f"{CAPACITY} == quantity('80Gi')"), [("", 81920, 1)], False),
        (a_request("device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'"), [("h100-80gb", 0, 1)], False),
        (
            {
                "name": "g",
                "firstAvailable": [a_request(f"{CAPACITY} == quantity('80Gi')"), a_request(f"{CAPACITY} == quantity('40Gi')", count=2)],
            },
            [("", 40960, 2), ("", 81920, 1)],
            False,
        ),
    ],
)
def test_without_devices_the_claim_speaks(request_: dict[str, object], want: list[tuple[str, int, int]], want_least: bool) -> None:
    """A bound is a bound: more may be given."""
    cards = cards_of(PODS, Facts(claims={"c": a_claim(request_)}))
    assert told(cards) == want
    assert cards.candidates[0].is_least is want_least


@pytest.mark.parametrize(
    "facts",
    [
        Facts(),
        Facts(claims={"c": a_claim(a_request(allocationMode="All"))}),
        Facts(claims={"c": a_claim(a_request())}),
        Facts(claims={"c": a_claim(a_request(), a_request(kind="mig.nvidia.com"))}),
        Facts(claims={"c": a_claim(a_request(count="many"))}),
    ],
)
def test_a_claim_that_does_not_tell_is_a_doubt(facts: Facts) -> None:
    """An unknown claim, all devices of a node, any GPU at all, two kinds at once."""
    cards = cards_of(PODS, facts)
    assert (cards.candidates, bool(cards.doubt)) == ((), True)


def test_claims_of_other_devices_are_no_gpus() -> None:
    """A network card is not judged."""
    assert not cards_of(PODS, Facts(claims={"c": a_claim(a_request(kind="rdma.example.com"))})).has_gpus


def test_like_requests_add_up() -> None:
    """Two requests of one GPU each are two GPUs."""
    claim = a_claim(a_request(), a_request())
    assert told(cards_of(PODS, Facts(claims={"c": claim}, devices=devices_of(SLICES)))) == [("a100-80gb", 81920, 2)]


def test_a_class_may_narrow_the_choice() -> None:
    """The expressions of the DeviceClass hold too."""
    facts = Facts(
        claims={"c": a_claim(a_request(kind="big"))},
        classes={"big": ["device.driver == 'gpu.nvidia.com'", f"{CAPACITY}.isGreaterThan(quantity('20Gi'))"]},
        devices=devices_of(SLICES),
    )
    assert told(cards_of(PODS, facts)) == [("a100-80gb", 81920, 1)]


PRODUCT = "device.attributes['gpu.nvidia.com'].productName"
L4 = [{"spec": {"driver": "gpu.nvidia.com", "devices": [{"attributes": {"productName": {"string": "NVIDIA L4"}}}]}}]


@pytest.mark.parametrize(
    ("expression", "want", "want_complete"),
    [
        (f"{PRODUCT} == 'NVIDIA L4'", ["l4-24gb"], True),
        (f"{PRODUCT} in ['NVIDIA L4', 'NVIDIA H100 80GB HBM3']", ["l4-24gb", "h100-80gb"], True),
        (f"{PRODUCT} in ['NVIDIA L4', 'NVIDIA of tomorrow']", ["l4-24gb"], False),
        (f"{CAPACITY}.compareTo(quantity('20Gi')) >= 0", ["l4-24gb"], False),
        ("device.driver == 'gpu.nvidia.com'", ["l4-24gb"], False),
    ],
)
def test_a_claim_that_names_its_card_gets_no_other(expression: str, want: list[str], want_complete: bool) -> None:
    """Whatever an autoscaler may bring."""
    facts = Facts(claims={"c": a_claim(a_request(expression))}, devices=devices_of(L4), nodes_may_join=True, catalogue=CATALOGUE)
    cards = cards_of(PODS, facts)
    assert ([each.gpu for each in cards.candidates], cards.is_complete) == (want, want_complete)


def test_a_slice_is_named_by_its_profile() -> None:
    """A product alone does not say which slice of it."""
    profile = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
    by_profile = Facts(claims={"c": a_claim(a_request(profile, kind="mig.nvidia.com"))}, catalogue=CATALOGUE)
    assert told(cards_of(PODS, by_profile)) == [("a100-40gb/1g.5gb", 0, 1)]
    by_product = Facts(claims={"c": a_claim(a_request(f"{PRODUCT} == 'NVIDIA A100-SXM4-40GB'", kind="mig.nvidia.com"))})
    assert cards_of(PODS, by_product).doubt


def test_one_alternative_that_does_not_tell_is_a_doubt() -> None:
    """It may be the one that is given."""
    request = {"name": "g", "firstAvailable": [a_request(f"{PRODUCT} == 'NVIDIA L4'"), a_request()]}
    assert cards_of(PODS, Facts(claims={"c": a_claim(request)})).doubt


def test_a_least_amount_is_said_in_gib() -> None:
    """Nobody reads eleven digits."""
    facts = Facts(claims={"c": a_claim(a_request(f"{CAPACITY}.compareTo(quantity('40Gi')) >= 0"))})
    assert cards_of(PODS, facts).candidates[0].memory_source == "capacity memory >= 40 GiB"
    assert cards_of(PODS, facts).candidates[0].name == "a GPU with 40 GiB"
