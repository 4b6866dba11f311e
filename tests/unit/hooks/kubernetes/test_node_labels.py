"""Which card the labels of a node mean."""

from __future__ import annotations

import pytest
from tests.unit.hooks.kubernetes.label_sets import DGX_A100_OLD, EIDF, G5_OLD_TIME_SLICED, MIG_MIXED, MIG_SINGLE, MPS, TIME_SLICED, V100_N

from peakgate.hooks.kubernetes.instance_types import TYPES, instance_gpus
from peakgate.hooks.kubernetes.node_labels import card_of
from peakgate.memory.catalog.gpus import GPUS, MEBIBYTE, find_gpu

PRODUCT, MEMORY, TYPE = "nvidia.com/gpu.product", "nvidia.com/gpu.memory", "node.kubernetes.io/instance-type"


@pytest.mark.parametrize(
    ("labels", "want_gpu", "want_mib", "want_shared"),
    [
        (DGX_A100_OLD, "a100-40gb", 39538, False),
        (V100_N, "v100-16gb", 16384, False),
        (MIG_SINGLE, "a100-40gb/1g.5gb", 5120, False),
        (TIME_SLICED, "", 16380, True),
        (MPS, "h200-141gb", 14377, False),
        (G5_OLD_TIME_SLICED, "a10g-24gb", 23028, True),
        ({PRODUCT: EIDF[0]}, "a100-80gb", 0, False),
        ({PRODUCT: EIDF[1]}, "a100-40gb", 0, False),
        ({PRODUCT: EIDF[2]}, "a100-40gb/3g.20gb", 0, False),
        ({PRODUCT: EIDF[3]}, "a100-40gb/1g.5gb", 0, False),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3", MEMORY: "85520809984"}, "h100-80gb", 81559, False),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3", MEMORY: "80"}, "h100-80gb", 0, False),
        ({PRODUCT: "NVIDIA-H100-80GB-HBM3", MEMORY: "20480"}, "", 20480, False),
        ({PRODUCT: "NVIDIA-GB10"}, "NVIDIA-GB10", 0, False),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "a100-40gb", 0, False),
        (
            {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"},
            "a100-40gb/1g.5gb",
            0,
            False,
        ),
        (
            {
                "cloud.google.com/gke-accelerator": "nvidia-l4",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
            },
            "l4-24gb",
            0,
            True,
        ),
        ({TYPE: "p5.48xlarge"}, "h100-80gb", 0, False),
        ({TYPE: "Standard_ND96amsr_A100_v4"}, "a100-80gb", 0, False),
        ({"karpenter.k8s.aws/instance-gpu-name": "a100", "karpenter.k8s.aws/instance-gpu-memory": "81920"}, "a100-80gb", 0, False),
        ({"karpenter.k8s.aws/instance-gpu-name": "h100", "karpenter.k8s.aws/instance-gpu-memory": "81920"}, "h100-80gb", 0, False),
    ],
)
def test_labels_of_a_node_mean_a_card(labels: dict[str, str], want_gpu: str, want_mib: int, want_shared: bool) -> None:
    """Product and memory agree or the memory is believed; a part that MPS bounds is a card of its own, one shared in time is no promise."""
    card = card_of(labels)
    assert card is not None
    assert (card.gpu, card.memory_bytes // MEBIBYTE, card.is_shared) == (want_gpu, want_mib, want_shared)
    assert card.memory_source


@pytest.mark.parametrize(
    "labels", [{}, {"kubernetes.io/os": "linux"}, {MEMORY: "80"}, {TYPE: "m5.large"}, {MEMORY: "-5"}, {MEMORY: "٣٩٥٣٨"}]
)
def test_labels_that_tell_nothing_mean_no_card(labels: dict[str, str]) -> None:
    """Nothing is made up: no label, an absurd amount, a type without GPUs."""
    assert card_of(labels) is None


@pytest.mark.parametrize(
    ("profile", "want_gpu", "want_mib"),
    [("3g.20gb", "a100-40gb/3g.20gb", 20096), ("2g.10gb", "a100-40gb/2g.10gb", 9984), ("1g.5gb", "a100-40gb/1g.5gb", 0)],
)
def test_a_slice_of_the_strategy_mixed_has_its_own_label(profile: str, want_gpu: str, want_mib: int) -> None:
    """The label of the slice wins over its nominal name; without one the profile of the node's card counts."""
    card = card_of(MIG_MIXED, profile)
    assert card is not None
    assert (card.gpu, card.memory_bytes // MEBIBYTE) == (want_gpu, want_mib)


def test_mps_gives_an_equal_part() -> None:
    """Each of ten clients has a tenth, and the source says so."""
    card = card_of(MPS)
    assert card is not None
    assert card.is_part
    assert card.memory_source == "nvidia.com/gpu.memory=143771 / 10 clients of MPS"


def test_every_instance_type_has_a_card_of_the_catalogue() -> None:
    """The table names cards that the service knows, and between one and sixteen of them."""
    assert {card for card, _ in TYPES.values()} <= set(GPUS)
    assert all(1 <= count <= 16 for _, count in TYPES.values())


def test_types_are_found_whatever_their_case() -> None:
    """Azure writes sizes with capitals, SageMaker puts ml. before."""
    assert instance_gpus("Standard_NC80adis_H100_v5") == ("h100-94gb", 2)
    assert instance_gpus("ml.p4d.24xlarge") == ("a100-40gb", 8)
    assert instance_gpus("m5.large") is None


def test_names_that_labels_give_are_known_to_the_service() -> None:
    """What a label is read as can be sent."""
    for product in (*EIDF, "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "NVIDIA-H100-NVL", "NVIDIA-B200", "NVIDIA-L40S", "Tesla-T4"):
        card = card_of({PRODUCT: product})
        assert card is not None
        assert find_gpu(card.gpu).total_bytes > 0
