"""A job's own word for its GPU against what the cluster tells."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.admission_reviews import FITS, H100, SPEC, T4, a_review, a_template, a_workload
from tests.unit.hooks.kubernetes.pods import a_node, a_term

from peakgate.hooks.kubernetes.admission import parse_review
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.node_labels import MEMORY
from peakgate.hooks.kubernetes.reading import read_object
from peakgate.hooks.kubernetes.stated_gpu import AskedCards, asked_of

PRODUCT = "nvidia.com/gpu.product"
GIB = 1 << 30
CATALOGUE = {"h100-80gb": 80 * GIB, "t4-16gb": 16 * GIB}
NODES = (a_node({PRODUCT: H100, MEMORY: "81559"}),)


def asked(gpu: dict[str, Any], facts: Facts, *, product: str = "", terms: list[Any] | None = None) -> AskedCards:
    """The cards of a Job that states a GPU."""
    template = a_template(product=product, annotations={SPEC: json.dumps({**FITS, "gpu": gpu})})
    if terms:
        template["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    read = read_object(parse_review(json.dumps(a_review(a_workload(template=template))).encode()))
    assert read.job is not None
    return asked_of(read, read.job, facts)


@pytest.mark.parametrize(
    ("gpu", "want"),
    [
        ({"type": "h100-80gb"}, ""),
        ({"type": "H100"}, ""),
        ({"memory_bytes": 80 * GIB}, ""),
        ({"memory_bytes": 10**15}, f"it states gpu.memory_bytes {10**15}, and gets {H100}: judged on that"),
        ({"type": "t4-16gb"}, f"it states gpu.type t4-16gb, and gets {H100}: judged on that"),
        ({"type": "h100-80gb", "memory_bytes": 10**15}, f"it states gpu.memory_bytes {10**15}, and gets {H100}: judged on that"),
        ({"count": 1}, ""),
    ],
)
@pytest.mark.parametrize(
    "facts",
    [Facts(), Facts(catalogue=CATALOGUE), Facts(nodes=NODES, catalogue=CATALOGUE), Facts(nodes=NODES, nodes_may_join=True)],
    ids=["nothing is known", "names are known", "nodes are known", "nodes are known, others may join"],
)
def test_what_a_selection_names_wins(gpu: dict[str, Any], want: str, facts: Facts) -> None:
    """In silence where the two are the same card."""
    if not facts.catalogue and gpu == {"memory_bytes": 80 * GIB} and not facts.nodes:
        want = f"it states gpu.memory_bytes {80 * GIB}, and gets {H100}: judged on that"  # nobody knows how much an H100 has
    found = asked(gpu, facts, product=H100)
    assert [each.name for each in found.cards.candidates] == [H100]
    assert found.overruled == want


@pytest.mark.parametrize(
    ("facts", "terms"),
    [
        (Facts(), None),
        (Facts(nodes=NODES, nodes_may_join=True), None),
        (Facts(nodes=(*NODES, a_node({}, name="nameless"))), None),
        (Facts(), [a_term(MEMORY, "Gt", "16000")]),
    ],
    ids=["nothing is selected", "others may join", "a node does not tell", "at least so much memory"],
)
def test_where_the_cluster_leaves_it_open_the_word_counts(facts: Facts, terms: list[Any] | None) -> None:
    """It knows more than the cluster does."""
    assert asked({"memory_bytes": 10**15}, facts, terms=terms) == AskedCards()


def test_all_nodes_that_there_will_ever_be_win_as_well() -> None:
    """Without a selection, and without an autoscaler."""
    found = asked({"memory_bytes": 10**15}, Facts(nodes=(*NODES, a_node({PRODUCT: T4, MEMORY: "15360"}, name="t4"))))
    assert found.overruled == f"it states gpu.memory_bytes {10**15}, and gets {T4} or {H100}: judged on that"
