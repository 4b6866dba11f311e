"""What GPUs a pod gets, in the order in which the facts are believed."""

from __future__ import annotations

import pytest
from tests.unit.hooks.kubernetes.label_sets import MIG_MIXED, MIG_SINGLE, MPS, TIME_SLICED
from tests.unit.hooks.kubernetes.pods import a_node, a_pod, a_term, the_pods

from peakgate.hooks.kubernetes.candidates import Cards
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.hooks.kubernetes.quantities import MEBIBYTE
from peakgate.memory.catalog.gpus import GPUS

GPU, PRODUCT, MEMORY, TYPE = "nvidia.com/gpu", "nvidia.com/gpu.product", "nvidia.com/gpu.memory", "node.kubernetes.io/instance-type"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3", MEMORY: "81559", "pool": "big"}
T4 = {PRODUCT: "Tesla-T4", MEMORY: "15360", "pool": "small"}
CATALOGUE = {name: spec.total_bytes for name, spec in GPUS.items()}


def told(cards: Cards) -> list[tuple[str, int, int]]:
    """(catalogue name, MiB, GPUs a pod) of each candidate."""
    return [(each.gpu, each.memory_bytes // MEBIBYTE, each.count) for each in cards.candidates]


def test_a_pod_without_gpus_has_neither_candidates_nor_a_doubt() -> None:
    """A launcher is not judged."""
    assert not cards_of(a_pod({"cpu": "2"}), Facts()).has_gpus


def test_a_flavor_names_the_card() -> None:
    """The labels of the flavor that a queue chose win over the pod's own selector, and each figure says where it is from."""
    cards = cards_of(a_pod({GPU: 8}, selector={PRODUCT: "Tesla-T4"}), Facts(flavor={PRODUCT: "NVIDIA-H100-80GB-HBM3"}, flavor_name="h100"))
    assert told(cards) == [("h100-80gb", 0, 8)]
    assert cards.candidates[0].memory_source == "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"
    assert cards.candidates[0].count_source == "resources nvidia.com/gpu"


@pytest.mark.parametrize(
    ("selector", "terms", "want"),
    [
        ({}, None, [("t4-16gb", 15360, 4), ("h100-80gb", 81559, 4)]),
        ({"pool": "big"}, None, [("h100-80gb", 81559, 4)]),
        ({}, [a_term("pool", "In", "big", "huge")], [("h100-80gb", 81559, 4)]),
        ({}, [a_term("pool", "NotIn", "big")], [("t4-16gb", 15360, 4)]),
        ({}, [a_term(MEMORY, "Gt", "20000")], [("h100-80gb", 81559, 4)]),
        ({}, [a_term(MEMORY, "Lt", "20000")], [("t4-16gb", 15360, 4)]),
        ({}, [a_term(MEMORY, "Exists")], [("t4-16gb", 15360, 4), ("h100-80gb", 81559, 4)]),
        ({}, [a_term("pool", "DoesNotExist")], []),
        ({}, [a_term("pool", "In", "small"), a_term("pool", "In", "big")], [("t4-16gb", 15360, 4), ("h100-80gb", 81559, 4)]),
        ({"pool": "big"}, [a_term("pool", "In", "small")], []),
    ],
)
def test_nodes_that_match_are_the_candidates(
    selector: dict[str, str], terms: list[object] | None, want: list[tuple[str, int, int]]
) -> None:
    """nodeSelector and required affinity with all operators; the terms are alternatives."""
    facts = Facts(nodes=[a_node(T4), a_node(H100), a_node(H100, name="gpu-2"), a_node({"pool": "cpu"}, gpus="0")])
    assert told(cards_of(a_pod({GPU: "4"}, selector=selector, terms=terms), facts)) == want


def test_a_node_that_never_has_room_is_no_candidate() -> None:
    """Eight GPUs do not fit on a node of four."""
    facts = Facts(nodes=[a_node(T4, gpus="4"), a_node(H100)])
    assert told(cards_of(a_pod({GPU: 8}), facts)) == [("h100-80gb", 81559, 8)]


def test_containers_side_by_side_add_up_and_those_before_do_not() -> None:
    """As the scheduler counts: a sidecar is a container, a container that prepares runs before the others."""
    want = 3
    body = [{"name": name, "resources": {"limits": {GPU: 1}}} for name in ("a", "b")]
    before = [
        {"name": "side", "restartPolicy": "Always", "resources": {"limits": {GPU: 1}}},
        {"name": "check", "resources": {"limits": {GPU: 2}}},
    ]
    pods = the_pods({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": body, "initContainers": before, "nodeSelector": T4}})
    assert cards_of(pods, Facts()).candidates[0].count == want


@pytest.mark.parametrize(
    ("resource", "labels", "want"),
    [
        ("nvidia.com/mig-3g.20gb", MIG_MIXED, [("a100-40gb/3g.20gb", 20096, 1)]),
        ("nvidia.com/mig-2g.20gb", {PRODUCT: "A100-SXM4-40GB", "nvidia.com/mig-2g.20gb.memory": "19968"}, [("a100-40gb", 19968, 1)]),
        ("nvidia.com/mig-1g.5gb", {PRODUCT: "A100-SXM4-40GB"}, [("a100-40gb/1g.5gb", 0, 1)]),
        ("nvidia.com/mig-1g.5gb.me", {PRODUCT: "A100-SXM4-40GB"}, [("a100-40gb/1g.5gb", 0, 1)]),
        (GPU, MIG_SINGLE, [("a100-40gb/1g.5gb", 5120, 1)]),
        (GPU, MPS, [("h200-141gb", 14377, 1)]),
        ("nvidia.com/gpu.shared", MPS, [("h200-141gb", 14377, 1)]),
        ("nvidia.com/gpu.shared", H100, [("h100-80gb", 81559, 1)]),
    ],
)
def test_slices_and_shared_resources(resource: str, labels: dict[str, str], want: list[tuple[str, int, int]]) -> None:
    """A slice has its own label, a client of MPS its equal part; a renamed resource that nothing bounds is shared. A slice that the
    catalogue does not hold has its card's name, by which its context and its kernels are known."""
    cards = cards_of(a_pod({resource: 1}), Facts(nodes=[a_node(labels, **{resource: "8"})], catalogue=CATALOGUE))
    assert told(cards) == want
    assert cards.candidates[0].is_shared is (labels is H100)


def test_time_slices_are_no_promise() -> None:
    """The whole card's memory, and others use it too."""
    (card,) = cards_of(a_pod({GPU: 1}), Facts(nodes=[a_node(TIME_SLICED, gpus="6")])).candidates
    assert (card.memory_bytes, card.is_shared) == (16380 * MEBIBYTE, True)


@pytest.mark.parametrize(
    ("limits", "annotations", "want"),
    [
        ({}, {"gpu-memory": "2000"}, [("h100-80gb", 2000, 1)]),
        ({}, {"gpu-fraction": "0.5"}, [("h100-80gb", 40779, 1)]),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, [("h100-80gb", 40779, 2)]),
        ({GPU: 2, "nvidia.com/gpumem": "3000"}, {}, [("h100-80gb", 3000, 2)]),
        ({GPU: 1, "nvidia.com/gpumem-percentage": "25"}, {}, [("h100-80gb", 20389, 1)]),
        ({GPU: 1, "nvidia.com/gpumem-percentage": "100"}, {}, [("h100-80gb", 81559, 1)]),
        ({"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": "8000"}, {}, [("h100-80gb", 8000, 2)]),
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": "50"}, {}, [("h100-80gb", 40779, 1)]),
    ],
)
def test_a_share_is_judged_by_itself(limits: dict[str, object], annotations: dict[str, str], want: list[tuple[str, int, int]]) -> None:
    """The schedulers that share cards: MiB as they stand, a part of the card that the nodes have."""
    facts = Facts(nodes=[a_node(H100, **{"volcano.sh/vgpu-number": "10"})])
    assert told(cards_of(a_pod(limits, annotations=annotations), facts)) == want


@pytest.mark.parametrize(
    ("labels", "may_join", "want"),
    [
        ([H100, T4], False, [("h100-80gb", 40000)]),
        ([T4], False, [("", 40000)]),
        ([{"pool": "odd"}], False, [("", 40000)]),
        ([H100], True, [("", 40000)]),
    ],
    ids=["of the card that holds it", "of none that is known", "no card is known", "another card may come"],
)
def test_so_many_bytes_are_of_a_card_that_holds_them(labels: list[dict[str, str]], may_join: bool, want: list[tuple[str, int]]) -> None:
    """They are the same on every card, so they are known in any case; the card is named where no other one can be."""
    facts = Facts(nodes=[a_node(each) for each in labels], nodes_may_join=may_join)
    cards = cards_of(a_pod({GPU: 1, "nvidia.com/gpumem": "40000"}), facts)
    assert [(gpu, mebibytes) for gpu, mebibytes, _ in told(cards)] == want
    assert (cards.is_complete, cards.candidates[0].is_part) == (True, True)


def test_a_part_of_a_card_that_is_only_named_needs_the_catalogue() -> None:
    """Half of an H100: with the catalogue its bytes, without it a doubt."""
    pods = a_pod(annotations={"gpu-fraction": "0.5"}, selector={PRODUCT: "NVIDIA-H100-80GB-HBM3"})
    assert told(cards_of(pods, Facts(catalogue=CATALOGUE))) == [("h100-80gb", 40779, 1)]
    assert "annotation gpu-fraction=0.5" in cards_of(pods, Facts()).doubt


@pytest.mark.parametrize(
    "annotations",
    [{"gpu-memory": "2000Mi"}, {"gpu-memory": "0"}, {"gpu-memory": "99999999"}, {"gpu-fraction": "1.5"}, {"gpu-fraction": "half"},
     {"gpu-fraction": ""}],
)  # fmt: skip
def test_a_share_that_makes_no_sense_is_a_doubt(annotations: dict[str, str]) -> None:
    """gpu-memory has no unit, a fraction is between 0 and 1."""
    cards = cards_of(a_pod(annotations=annotations), Facts(nodes=[a_node(H100)]))
    assert (cards.candidates, bool(cards.doubt)) == ((), True)


@pytest.mark.parametrize(
    ("selector", "terms", "want"),
    [
        ({TYPE: "p4d.24xlarge"}, None, [("a100-40gb", 0, 8)]),
        ({}, [a_term(TYPE, "In", "p5.48xlarge", "p4de.24xlarge")], [("h100-80gb", 0, 8), ("a100-80gb", 0, 8)]),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, None, [("h100-80gb", 0, 8)]),
        ({"pool": "new"}, None, []),
        ({}, [a_term(TYPE, "In", "p5.48xlarge"), a_term("pool", "In", "new")], []),
    ],
)
def test_from_zero_the_selection_speaks(selector: dict[str, str], terms: list[object] | None, want: list[tuple[str, int, int]]) -> None:
    """No node matches yet: the instance type or the accelerator that is named; each alternative must name one, else nothing is known."""
    cards = cards_of(a_pod({GPU: 8}, selector=selector, terms=terms), Facts(nodes=[a_node(T4)], catalogue=CATALOGUE))
    assert told(cards) == want
    assert bool(cards.doubt) is (not want)


def test_a_bound_on_the_memory_says_how_little_there_may_be() -> None:
    """Without nodes an affinity on the label of the memory is a lower bound."""
    (card,) = cards_of(a_pod({GPU: 1}, terms=[a_term(MEMORY, "Gt", "40000")]), Facts()).candidates
    assert (card.memory_bytes, card.is_least) == (40000 * MEBIBYTE, True)


@pytest.mark.parametrize(("may_join", "selector", "want"), [(False, {}, True), (True, {}, False), (True, {PRODUCT: "Tesla-T4"}, True)])
def test_an_autoscaler_may_bring_other_cards(may_join: bool, selector: dict[str, str], want: bool) -> None:
    """The nodes of today are all there is, unless others may join and the selection names no card."""
    assert cards_of(a_pod({GPU: 1}, selector=selector), Facts(nodes=[a_node(T4)], nodes_may_join=may_join)).is_complete is want


def test_nodes_without_labels_leave_the_list_open() -> None:
    """Some nodes tell their card and one does not."""
    cards = cards_of(a_pod({GPU: 1}), Facts(nodes=[a_node(T4), a_node({"pool": "odd"})]))
    assert (told(cards), cards.is_complete) == ([("t4-16gb", 15360, 1)], False)


def test_several_kinds_of_gpus_in_a_pod_are_a_doubt() -> None:
    """Whole cards and slices in one pod: no one answer holds."""
    cards = cards_of(a_pod({GPU: 1, "nvidia.com/mig-1g.5gb": 1}), Facts())
    assert cards.doubt == "its containers ask for several kinds of GPUs: nvidia.com/gpu, nvidia.com/mig-1g.5gb"


MIG = "nvidia.com/mig-1g.5gb"


@pytest.mark.parametrize(
    "facts",
    [
        Facts(catalogue=CATALOGUE),
        Facts(nodes=[], nodes_may_join=True, catalogue=CATALOGUE),
        Facts(nodes=[a_node(T4)], nodes_may_join=True, catalogue=CATALOGUE),
        Facts(nodes=[a_node({"pool": "a"}, **{MIG: "7"})], catalogue=CATALOGUE),
    ],
    ids=["nodes are not looked at", "no node", "none with slices", "one that does not tell"],
)
def test_the_name_of_a_slice_says_its_size(facts: Facts) -> None:
    """On every card that has the profile, whatever the nodes tell."""
    cards = cards_of(a_pod({MIG: 1}), facts)
    assert told(cards) == [("a100-40gb/1g.5gb", 0, 1)]
    assert (cards.is_complete, cards.doubt) == (True, "")


def test_a_slice_of_a_node_is_not_the_only_one_that_may_come() -> None:
    """The same profile on another card may be larger."""
    name = "nvidia.com/mig-1g.10gb"
    facts = Facts(nodes=[a_node({PRODUCT: "A100-SXM4-80GB"}, **{name: "7"})], nodes_may_join=True, catalogue=CATALOGUE)
    cards = cards_of(a_pod({name: 1}), facts)
    assert {each.gpu for each in cards.candidates} == {"a100-80gb/1g.10gb", "a100-40gb/1g.10gb", "h100-80gb/1g.10gb"}
    assert cards.is_complete
    assert told(cards_of(a_pod({name: 1}), Facts(nodes=facts.nodes, catalogue=CATALOGUE))) == [("a100-80gb/1g.10gb", 0, 1)]


def test_a_profile_that_no_card_has_is_a_doubt() -> None:
    """As is any without a catalogue."""
    assert cards_of(a_pod({"nvidia.com/mig-9g.5gb": 1}), Facts(catalogue=CATALOGUE)).doubt
    assert cards_of(a_pod({MIG: 1}), Facts()).doubt


def test_of_several_cards_that_are_named_those_without_a_node_may_come() -> None:
    """A job that fits on one of them is not refused because only the other has a node now."""
    terms = [a_term(PRODUCT, "In", T4[PRODUCT], H100[PRODUCT])]
    cards = cards_of(a_pod({GPU: 1}, terms=terms), Facts(nodes=[a_node(T4)], nodes_may_join=True, catalogue=CATALOGUE))
    assert told(cards) == [("t4-16gb", 15360, 1), ("h100-80gb", 0, 1)]
    assert cards.is_complete
    assert told(cards_of(a_pod({GPU: 1}, terms=terms), Facts(nodes=[a_node(T4)]))) == [("t4-16gb", 15360, 1)]
