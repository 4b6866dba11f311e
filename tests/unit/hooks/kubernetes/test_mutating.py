"""What the mutating webhook adds, applied as an API server would, once and again."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from tests.admission_reviews import H100, KINDS, T4, a_container, a_template, a_workload
from tests.unit.hooks.kubernetes.pods import a_node, a_term

from peakgate.hooks.asking import SERVICE, Judgement
from peakgate.hooks.kubernetes.candidates import Conclusion
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.judging import Judged
from peakgate.hooks.kubernetes.mutating import AFFINITY, NOTHING, changed_by, least_mebibytes, patch_of
from peakgate.hooks.kubernetes.mutating import (
    ANNOTATION as ANNOTATED,
)
from peakgate.hooks.kubernetes.node_labels import MEMORY
from peakgate.hooks.kubernetes.templates import templates_of
from peakgate.v1.prediction_pb2 import Capacity, Peak, PredictResponse, Verdict

GIB = 1 << 30
ANNOTATION = "peakgate.io/prediction"
PRODUCT = "nvidia.com/gpu.product"
NODE = a_node({PRODUCT: H100, MEMORY: "81559"})
LABELLED = Facts(nodes=(NODE,))


def judged(
    *,
    bound: int = 40 * GIB,
    total: int = 80 * GIB,
    usable: int = 79 * GIB,
    prediction: str = "predictions/p1",
    verdict: Verdict.ValueType = Verdict.VERDICT_ADMIT,
) -> Judged:
    """An answer."""
    peak, capacity = Peak(bound_bytes=bound), Capacity(total_bytes=total, usable_bytes=usable)
    answer = PredictResponse(prediction=prediction, verdict=verdict, peak=peak, capacity=capacity)
    return Judged(judgement=Judgement(answer=answer, by=SERVICE))


def applied(workload: dict[str, Any], patch: list[Any]) -> dict[str, Any]:
    """RFC 6902, the operation `add` alone."""
    tree = copy.deepcopy(workload)
    for each in patch:
        assert each["op"] == "add"
        at: Any = tree
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        for part in path:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if isinstance(at, list):
            at.insert(len(at) if last == "-" else int(last), each["value"])
        else:
            at[last] = copy.deepcopy(each["value"])
    return tree


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_adds_two_things_and_is_idempotent(kind: str) -> None:
    """The prediction on the workload and on its pods, and an expression on the nodes; a second time there is nothing to add."""
    workload = a_workload(kind)
    patched = applied(workload, list(patch_of(workload, judged(), LABELLED)))
    assert patched["metadata"]["annotations"][ANNOTATION] == "predictions/p1"
    assert patch_of(patched, judged(), LABELLED) == []
    assert len(templates_of(patched)) == (kind != "TrainJob")
    for template in templates_of(patched):
        pod: Any = template.pod
        assert pod["metadata"]["annotations"][ANNOTATION] == "predictions/p1"
        if kind == "CronJob":  # its job may change later, and the affinity would stay
            assert "affinity" not in pod["spec"]
            continue
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms == [{"matchExpressions": [{"key": MEMORY, "operator": "Gt", "values": [str(41 * 1024 - 1)]}]}]


def test_nothing_of_the_submitters_is_changed() -> None:
    """Terms that are there keep what they say, and each of them gets the expression, for they are alternatives."""
    own = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = [{"matchExpressions": [own]}, {"matchFields": [own]}]
    workload = a_workload()
    pod = workload["spec"]["template"]["spec"]
    pod["affinity"] = {
        "podAffinity": {},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": copy.deepcopy(terms)}},
    }
    affinity = applied(workload, list(patch_of(workload, judged(), LABELLED)))["spec"]["template"]["spec"]["affinity"]
    found = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    wanted = {"key": MEMORY, "operator": "Gt", "values": [str(41 * 1024 - 1)]}
    assert found == [{"matchExpressions": [own, wanted]}, {"matchFields": [own], "matchExpressions": [wanted]}]
    assert affinity["podAffinity"] == {}


def test_a_label_of_one_mebibyte_less_is_passed_by() -> None:
    """A node whose label is exactly what is needed passes, one MiB less does not."""
    answer = judged(bound=40 * GIB + 1, total=80 * GIB, usable=80 * GIB).judgement.answer
    assert answer is not None
    assert least_mebibytes(answer) == 40 * 1024  # Gt: at least 40961 MiB
    assert least_mebibytes(PredictResponse()) == 0


def test_without_a_prediction_no_annotation() -> None:
    """A dry run, or a judgement that was not recorded, names nothing."""
    workload = a_workload()
    assert all(ANNOTATION.replace("/", "~1") not in str(each) for each in patch_of(workload, judged(prediction=""), LABELLED))
    assert patch_of(workload, Judged(judgement=Judgement()), LABELLED) == []


def test_slices_and_other_resources_are_left_alone() -> None:
    """Their nodes' label is the whole card's memory."""
    container = a_container(gpus=0) | {"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}
    workload = a_workload(template=a_template(container=container))
    patched = applied(workload, list(patch_of(workload, judged(), LABELLED)))
    assert "affinity" not in patched["spec"]["template"]["spec"]
    assert patched["metadata"]["annotations"][ANNOTATION] == "predictions/p1"


@pytest.mark.parametrize(
    ("verdict", "usable", "want"),
    [
        (Verdict.VERDICT_ADMIT, 79 * GIB, True),
        (Verdict.VERDICT_REJECT, 79 * GIB, False),
        (Verdict.VERDICT_UNDECIDED, 79 * GIB, False),
        (Verdict.VERDICT_UNDECIDED, 0, True),
    ],
)
def test_what_may_not_fit_is_not_left_waiting_for_a_node(verdict: Verdict.ValueType, usable: int, *, want: bool) -> None:
    """An affinity that no card of its kind meets would refuse the job in every mode; where no card is named it picks one that holds it."""
    patched = applied(a_workload(), list(patch_of(a_workload(), judged(verdict=verdict, usable=usable), LABELLED)))
    assert ("affinity" in patched["spec"]["template"]["spec"]) is want
    assert patched["metadata"]["annotations"][ANNOTATION] == "predictions/p1"


BARE = a_node({PRODUCT: H100}, name="bare")
OTHER = a_node({PRODUCT: T4}, name="other")
NO_GPU = a_node({}, name="cpu", gpus="0")


@pytest.mark.parametrize(
    ("facts", "product", "want"),
    [
        (LABELLED, H100, True),
        (LABELLED, "", True),
        (Facts(nodes=(NODE, BARE)), H100, False),
        (Facts(nodes=(NODE, OTHER)), H100, True),
        (Facts(nodes=(NODE, OTHER)), "", False),
        (Facts(nodes=(NODE, NO_GPU)), "", True),
        (Facts(nodes=()), "", False),
        (Facts(nodes=()), H100, True),
        (Facts(), H100, True),
        (Facts(), "", False),
    ],
    ids=[
        "the node has it",
        "no selection, the node has it",
        "one that is allowed lacks it",
        "one that is not allowed lacks it",
        "no selection, one lacks it",
        "a node without GPUs lacks it",
        "none is there",
        "none is there, a label of the same writer is demanded",
        "not looked at, a label of the same writer is demanded",
        "not looked at",
    ],
)
def test_an_affinity_comes_only_where_no_node_lacks_its_label(facts: Facts, product: str, *, want: bool) -> None:
    """To a node without the label the pod would never go, though it might fit there."""
    workload = a_workload(template=a_template(product=product))
    patch = patch_of(workload, judged(), facts)
    assert ("affinity" in applied(workload, list(patch))["spec"]["template"]["spec"]) is want
    assert changed_by(patch) == (AFFINITY if want else ANNOTATED)


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        ([a_term(PRODUCT, "In", H100)], True),
        ([a_term(PRODUCT, "Exists")], True),
        ([a_term(PRODUCT, "NotIn", T4)], False),
        ([a_term("nvidia.com/gpu.present", "In", "true")], False),
        ([a_term(PRODUCT, "In", H100), a_term("zone", "In", "a")], False),
    ],
)
def test_every_way_to_meet_the_selection_must_demand_a_label_of_the_same_writer(terms: list[Any], *, want: bool) -> None:
    """An exclusion demands nothing, and other programs write other labels."""
    template = a_template(product="")
    template["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    workload = a_workload(template=template)
    assert (changed_by(patch_of(workload, judged(), Facts())) == AFFINITY) is want


@pytest.mark.parametrize(
    ("bound", "label", "want"),
    [(70 * GIB, "", True), (760 * GIB, "", False), (760 * GIB, "900000", True)],
    ids=["a card has it", "no card has it", "a node has a card without a name here"],
)
def test_memory_that_no_card_has_is_not_waited_for(bound: int, label: str, want: bool) -> None:
    """The job would wait for ever, and nobody would tell why."""
    nodes = (NODE, *([a_node({PRODUCT: H100, MEMORY: label})] if label else []))
    facts = Facts(nodes=nodes, catalogue={"h100-80gb": 80 * GIB, "t4-16gb": 16 * GIB})
    workload = a_workload("Job", template=a_template(product=H100))
    patch = patch_of(workload, judged(bound=bound, total=0, usable=0), facts)
    assert (changed_by(patch) == AFFINITY) is want


def test_a_patch_without_operations_changes_nothing() -> None:
    """A word of its own in the metrics."""
    assert changed_by(()) == NOTHING


@pytest.mark.parametrize(
    ("is_mixed", "verdict", "want"),
    [
        (True, Verdict.VERDICT_UNDECIDED, False),
        (True, Verdict.VERDICT_ADMIT, True),
        (False, Verdict.VERDICT_UNDECIDED, True),
    ],
    ids=["fits one of the cards that its pods run on", "fits all of them", "may get either"],
)
def test_pods_on_a_card_that_is_too_small_do_not_wait_for_another(is_mixed: bool, verdict: Verdict.ValueType, want: bool) -> None:
    """The answer that is shown is that for the larger card: pods that may get it are led there, pods that name a smaller one stay."""
    workload = a_workload("PyTorchJob")
    found = replace(judged(), conclusion=Conclusion(verdict=verdict, is_mixed=is_mixed))
    assert (changed_by(patch_of(workload, found, LABELLED)) == AFFINITY) is want
