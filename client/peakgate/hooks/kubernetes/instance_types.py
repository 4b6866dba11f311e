"""GPUs of the clouds' instance types, for nodes that do not exist yet or carry no label of their GPU. Data.

AWS: EC2 user guide, accelerated computing instances, column GPUs. Google: Compute Engine, GPU machine types, column GPU count; G2 machine
types. Azure: Virtual Machines sizes, GPU accelerated, series NC, ND and NV, column Accelerators (Qty.).
"""

from __future__ import annotations

from collections.abc import Mapping

_G5 = {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
"""The sizes of g5, g6 and g6e have the same counts."""

_ROWS: tuple[tuple[str, str, Mapping[str, int]], ...] = (
    ("p3.", "v100-16gb", {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}),
    ("p3dn.", "v100-32gb", {"24xlarge": 8}),
    ("p4d.", "a100-40gb", {"24xlarge": 8}),
    ("p4de.", "a100-80gb", {"24xlarge": 8}),
    ("p5.", "h100-80gb", {"4xlarge": 1, "48xlarge": 8}),
    ("p5e.", "h200-141gb", {"48xlarge": 8}),
    ("p5en.", "h200-141gb", {"48xlarge": 8}),
    ("p6-b200.", "b200", {"48xlarge": 8}),
    ("g4dn.", "t4-16gb", {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "metal": 8}),
    ("g5.", "a10g-24gb", _G5),
    ("g6.", "l4-24gb", _G5),
    ("gr6.", "l4-24gb", {"4xlarge": 1, "8xlarge": 1}),
    ("g6e.", "l40s-48gb", _G5),
    ("a2-highgpu-", "a100-40gb", {"1g": 1, "2g": 2, "4g": 4, "8g": 8}),
    ("a2-megagpu-", "a100-40gb", {"16g": 16}),
    ("a2-ultragpu-", "a100-80gb", {"1g": 1, "2g": 2, "4g": 4, "8g": 8}),
    ("a3-highgpu-", "h100-80gb", {"1g": 1, "2g": 2, "4g": 4, "8g": 8}),
    ("a3-megagpu-", "h100-80gb", {"8g": 8}),
    ("a3-edgegpu-", "h100-80gb", {"8g": 8}),
    ("a3-ultragpu-", "h200-141gb", {"8g": 8}),
    ("a4-highgpu-", "b200", {"8g": 8}),
    ("g2-standard-", "l4-24gb", {"4": 1, "8": 1, "12": 1, "16": 1, "32": 1, "24": 2, "48": 4, "96": 8}),
    ("standard_nc", "v100-16gb", {"6s_v3": 1, "12s_v3": 2, "24s_v3": 4, "24rs_v3": 4}),
    ("standard_nc", "t4-16gb", {"4as_t4_v3": 1, "8as_t4_v3": 1, "16as_t4_v3": 1, "64as_t4_v3": 4}),
    ("standard_nc", "a100-80gb", {"24ads_a100_v4": 1, "48ads_a100_v4": 2, "96ads_a100_v4": 4}),
    ("standard_nc", "h100-94gb", {"40ads_h100_v5": 1, "80adis_h100_v5": 2}),
    ("standard_nd", "v100-32gb", {"40rs_v2": 8}),
    ("standard_nd", "a100-40gb", {"96asr_v4": 8}),
    ("standard_nd", "a100-80gb", {"96amsr_a100_v4": 8}),
    ("standard_nd", "h100-80gb", {"96isr_h100_v5": 8}),
    ("standard_nd", "h200-141gb", {"96isr_h200_v5": 8}),
    ("standard_nv", "a10-24gb", {"36ads_a10_v5": 1, "36adms_a10_v5": 1, "72ads_a10_v5": 2}),
)
"""Beginning of a type, the card, and GPUs by what follows."""

TYPES: dict[str, tuple[str, int]] = {f"{start}{rest}": (card, count) for start, card, counts in _ROWS for rest, count in counts.items()}
"""Instance type -> (card, GPUs)."""


def instance_gpus(kind: str) -> tuple[str, int] | None:
    """The card and how many of them a type has; None for one that is not in the table."""
    return TYPES.get(kind.strip().lower().removeprefix("ml."))
