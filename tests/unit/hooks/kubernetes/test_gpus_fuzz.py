"""Objects that nobody would write: nothing raises, and nothing is made up."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.hooks.kubernetes.pods import a_pod
from tests.unit.hooks.kubernetes.test_claims import PODS, a_claim, a_request

from peakgate.hooks.kubernetes.candidates import Cards, concluded
from peakgate.hooks.kubernetes.cel import conditions_of
from peakgate.hooks.kubernetes.facts import Facts, devices_of, nodes_of
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.v1.prediction_pb2 import Verdict

WORDS = st.sampled_from(
    [
        "0",
        "-1",
        "1",
        "8",
        "81559",
        "85520809984",
        "80Gi",
        "1e3",
        "1e999",
        "٨",
        "NVIDIA-H100-80GB-HBM3",
        "x-SHARED",
        "mps",
        "a100",
        "p5.48xlarge",
        "true",
        "In",
        "Gt",
        "\x00",
        "time-slicing",
        "",
        "9" * 30,
        "0.5",
        "1.5",
        "3g.20gb",
        "NaN",
    ]
)
KEYS = st.sampled_from(
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-3g.20gb",
        "nvidia.com/mig-",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.memory",
        "nvidia.com/gpu.replicas",
        "gpu-memory",
        "nvidia.com/gpu.sharing-strategy",
        "node.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-gpu-name",
        "gpu-fraction",
        "other",
        "gpu-fraction-num-devices",
        "karpenter.k8s.aws/instance-gpu-memory",
        "cloud.google.com/gke-gpu-partition-size",
    ]
)
MAPS = st.dictionaries(KEYS, WORDS, max_size=5)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3),
    max_leaves=8,
)
EXPRESSION = st.fixed_dictionaries({"key": KEYS, "operator": WORDS, "values": st.lists(WORDS, max_size=2)})
TERMS = st.lists(st.fixed_dictionaries({"matchExpressions": st.lists(EXPRESSION, max_size=2)}), max_size=2)
PODS_ASKED = st.fixed_dictionaries({"limits": MAPS, "selector": MAPS, "annotations": MAPS, "terms": TERMS})


def assert_sound(cards: Cards) -> None:
    """A candidate has a name or bytes, a count, and says where each is from."""
    for each in cards.candidates:
        assert each.gpu or each.memory_bytes > 0
        assert each.count > 0
        assert each.memory_source
        assert each.count_source


@given(asked=PODS_ASKED, labels=MAPS, has=MAPS, may_join=st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_is_asked_for_is_judged_by_a_figure_or_not_at_all(
    asked: dict[str, Any], labels: dict[str, str], has: dict[str, str], may_join: bool
) -> None:
    """Without a sound candidate nobody is refused."""
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": has | {"nvidia.com/gpu": "8"}}}
    cards = cards_of(a_pod(**asked), Facts(nodes=nodes_of([node]), nodes_may_join=may_join))
    assert_sound(cards)
    if not cards.candidates:
        assert concluded(cards, ()).verdict == Verdict.VERDICT_UNDECIDED


@given(request_=ANYTHING, slices=st.lists(ANYTHING, max_size=2), spec=ANYTHING)
@settings(max_examples=150, deadline=None)
def test_claims_of_any_form_are_read_or_left(request_: object, slices: list[object], spec: object) -> None:
    """The API server has checked them, but nothing depends on it."""
    objects = [{"spec": each} for each in slices]
    claim = {"devices": {"requests": [request_, a_request() | {"exactly": spec}]}}
    cards = cards_of(PODS, Facts(claims={"c": claim}, devices=devices_of(objects)))
    assert_sound(cards)


@pytest.mark.parametrize(
    "expression",
    ["(" * 5000 + ")" * 5000, "(a && " * 1500 + ")" * 1500, "'" * 10_000, " . " * 3000, "device.attributes['" * 500, "a || " * 2000],
    ids=["brackets", "nested", "quotes", "dots", "fields", "alternatives"],
)
def test_an_expression_takes_no_time(expression: str) -> None:
    """Whoever may write a claim must not be able to hold up a webhook."""
    begun = time.process_time()
    conditions_of(expression)
    cards_of(PODS, Facts(claims={"c": a_claim(a_request(expression))}))
    assert time.process_time() - begun < 0.5
