"""The GPU catalogue: memory as NVML reports it, and names as people and NVML write them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from peakgate.memory.catalog.gpus import GPUS, find_gpu
from peakgate.memory.prediction import JobError

MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30

PROMISED = (
    "a10g-24gb", "a100-40gb", "a100-80gb", "a800-80gb", "a6000-48gb", "b200", "gb200", "h100-80gb", "h100-96gb",
    "h800-80gb", "h200-141gb", "l4-24gb", "l40s-48gb", "rtx-3090-24gb", "rtx-4090-24gb", "t4-16gb", "v100-16gb",
    "v100-32gb", "a40-48gb", "titan-rtx-24gb", "b300", "gb300", "gh200-96gb", "rtx-5090-32gb", "rtx-6000-ada-48gb",
    "l40-48gb", "h20-96gb", "a30-24gb", "a2-16gb", "rtx-3060-12gb", "h100-80gb/3g.40gb",
)  # fmt: skip


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_name_is_known(name: str) -> None:
    """A name that the job document promises stands for itself."""
    assert find_gpu(name).name == name


@pytest.mark.parametrize(
    ("name", "want_total_mib", "want_free_mib"),
    [
        ("a100-40gb", 40960, 40443),
        ("h100-80gb", 81559, 81080),
        ("b200", 183359, 182632),
        ("gb200", 189471, 188730),
        ("gb300", 284208, 283262),
        ("l40s-48gb", 46068, 45460),
        ("t4-16gb", 15360, 14913),
    ],
)
def test_memory_is_what_idle_nodes_report(name: str, want_total_mib: int, want_free_mib: int) -> None:
    """Total and free memory of idle GPUs in the nvidia-smi captures of NVIDIA/k8s-test-infra, to the MiB they are rounded to."""
    spec = GPUS[name]
    assert spec.total_bytes == want_total_mib * MEBIBYTE
    assert abs(spec.usable_bytes - want_free_mib * MEBIBYTE) <= MEBIBYTE


@pytest.mark.parametrize(
    ("name", "want_lowest_gib", "want_highest_gib"),
    [
        ("a10g-24gb", 21.98, 22.06),
        ("rtx-3090-24gb", 23.67, 23.70),
        ("titan-rtx-24gb", 23.64, 23.65),
        ("v100-16gb", 15.77, 15.78),
        ("v100-32gb", 31.71, 31.75),
        ("a40-48gb", 44.34, 44.35),
        ("a6000-48gb", 47.39, 47.54),
        ("a100-80gb", 79.14, 79.44),
        ("h100-96gb", 94.98, 95.00),
        ("h200-141gb", 139.71, 139.81),
    ],
)
def test_usable_memory_is_the_capacity_that_out_of_memory_messages_print(
    name: str, want_lowest_gib: float, want_highest_gib: float
) -> None:
    """PyTorch prints total − reserved as the capacity of the GPU; the messages are public issues."""
    assert want_lowest_gib <= GPUS[name].usable_bytes / GIBIBYTE <= want_highest_gib


def test_every_row_is_consistent() -> None:
    """Names match, something is left to use, a slice is smaller than its card, and every row has a source."""
    for name, spec in GPUS.items():
        card = GPUS[name.partition("/")[0]]
        assert spec.name == name
        assert 0.9 * spec.total_bytes < spec.usable_bytes <= spec.total_bytes
        assert spec.source
        assert spec.dense_bf16_flops > 0
        assert spec.memory_bandwidth > 0
        assert "/" not in name or (spec.total_bytes < card.total_bytes and spec.compute_capability == card.compute_capability)


def test_slices_with_more_memory_slices_are_larger() -> None:
    """The number before gb orders the slices of a card."""
    for card in ("a30-24gb", "a100-40gb", "a100-80gb", "h100-80gb", "h200-141gb", "b200"):
        slices = sorted(
            (float(name.rpartition(".")[2].removesuffix("gb")), spec.total_bytes)
            for name, spec in GPUS.items()
            if name.startswith(f"{card}/")
        )
        assert len({nominal for nominal, _ in slices}) >= 3
        assert all(small[1] < large[1] for small, large in pairwise(slices) if small[0] < large[0])


@pytest.mark.parametrize(
    ("written", "want_name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-80gb"),
        ("H100", "h100-80gb"),
        ("  h200 ", "h200-141gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb"),
        ("Tesla T4", "t4-16gb"),
        ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090-24gb"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada-48gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-40gb/1g.5gb"),
        ("H100/3g.40gb", "h100-80gb/3g.40gb"),
    ],
)
def test_other_names_of_a_card_are_understood(written: str, want_name: str) -> None:
    """NVML's product names and unambiguous short names work, in any case."""
    assert find_gpu(written).name == want_name


@pytest.mark.parametrize(
    ("written", "want_nearest"),
    [("h100-81gb", "h100-80gb"), ("a100", "a100-40gb or a100-80gb"), ("h100-80gb/3g.41gb", "h100-80gb/3g.40gb")],
)
def test_an_unknown_name_is_refused_with_the_nearest(written: str, want_nearest: str) -> None:
    """A name that is unknown, or means two cards, is an error that names the field and what may have been meant."""
    with pytest.raises(JobError) as caught:
        find_gpu(written)
    (error,) = caught.value.fields
    assert caught.value.reason == "ACCELERATOR_UNKNOWN"
    assert error.field == "gpu.type"
    assert want_nearest in error.description


@pytest.mark.parametrize("written", ["", "tpu-v5p", "/", "💥"])
def test_a_name_that_is_like_nothing_is_refused_with_a_remedy(written: str) -> None:
    """Without a near name the error tells where the names are, and of gpu.memory_bytes."""
    with pytest.raises(JobError, match=r"catalog gpus.*gpu\.memory_bytes"):
        find_gpu(written)
