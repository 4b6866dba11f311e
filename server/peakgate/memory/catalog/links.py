"""Links of a GPU: to the others of its node, to those of other nodes, and to the host's memory.

Rates are in GB/s of one GPU in one direction, as published. Sources: NVIDIA's data sheets and architecture papers of each card (NVLink:
half of the bidirectional figure; PCIe x16: 16, 32 and 64 for generations 3, 4 and 5) and of the systems around them (network). A bridge
joins two cards only, so a ring over a node's cards goes over PCIe, and PCIe stands for bridged cards as for those without NVLink.
"""

from __future__ import annotations

from dataclasses import dataclass

GIGABYTE = 1e9
PCIE_3, PCIE_4, PCIE_5 = 16.0, 32.0, 64.0
NVLINK_2, NVLINK_3, NVLINK_4, NVLINK_5 = 150.0, 300.0, 450.0, 900.0
EXPORTED = 200.0
"""NVLink of the A800 and the H800, 400 GB/s in both directions."""
CHIP_TO_CHIP = 450.0
"""NVLink-C2C between a Grace CPU and its GPU."""

INFINIBAND_100, INFINIBAND_200, INFINIBAND_400, INFINIBAND_800 = 12.5, 25.0, 50.0, 100.0
SHARED_ETHERNET = 12.5 / 8
"""100 Gb/s for eight GPUs, the common network of nodes with such cards (AWS g4dn.metal, g5.48xlarge, g6.48xlarge, p3dn.24xlarge)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Bytes per second of one GPU in one direction."""

    inside_node: float
    between_nodes: float
    to_host: float


# Of each card: inside a node, between nodes, to the host.
_LINKS: dict[str, tuple[float, float, float]] = {
    "a2-16gb": (PCIE_3, SHARED_ETHERNET, PCIE_3),  # PCIe 4 x8
    "a100-40gb": (NVLINK_3, INFINIBAND_200, PCIE_4),  # DGX A100: eight adapters of 200 Gb/s for eight GPUs
    "a100-80gb": (NVLINK_3, INFINIBAND_200, PCIE_4),
    "a800-80gb": (EXPORTED, INFINIBAND_200, PCIE_4),
    "b200": (NVLINK_5, INFINIBAND_400, PCIE_5),  # DGX B200: eight of 400 Gb/s
    "b300": (NVLINK_5, INFINIBAND_800, PCIE_5),  # DGX B300: eight of 800 Gb/s
    "gb200": (NVLINK_5, INFINIBAND_400, CHIP_TO_CHIP),  # GB200 NVL72: one adapter of 400 Gb/s a GPU
    "gb300": (NVLINK_5, INFINIBAND_800, CHIP_TO_CHIP),
    "gh200-96gb": (NVLINK_4, INFINIBAND_400, CHIP_TO_CHIP),
    "h20-96gb": (NVLINK_4, INFINIBAND_400, PCIE_5),
    "h100-80gb": (NVLINK_4, INFINIBAND_400, PCIE_5),  # DGX H100: eight of 400 Gb/s
    "h100-94gb": (PCIE_5, INFINIBAND_400, PCIE_5),  # a bridge joins two
    "h100-96gb": (NVLINK_4, INFINIBAND_400, PCIE_5),
    "h800-80gb": (EXPORTED, INFINIBAND_400, PCIE_5),
    "h200-141gb": (NVLINK_4, INFINIBAND_400, PCIE_5),
    "l40s-48gb": (PCIE_4, INFINIBAND_100 / 2, PCIE_4),  # AWS g6e.48xlarge: 400 Gb/s for eight
    "rtx-2080ti-11gb": (PCIE_3, SHARED_ETHERNET, PCIE_3),
    "rtx-5090-32gb": (PCIE_5, SHARED_ETHERNET, PCIE_5),
    "rtx-pro-6000-96gb": (PCIE_5, SHARED_ETHERNET, PCIE_5),
    "t4-16gb": (PCIE_3, SHARED_ETHERNET, PCIE_3),
    "titan-rtx-24gb": (PCIE_3, SHARED_ETHERNET, PCIE_3),
    "v100-16gb": (NVLINK_2, INFINIBAND_100 / 2, PCIE_3),  # DGX-1: four adapters of 100 Gb/s for eight GPUs
    "v100-32gb": (NVLINK_2, INFINIBAND_100 / 2, PCIE_3),
}
_COMMON = (PCIE_4, SHARED_ETHERNET, PCIE_4)
"""Every other card of the catalogue is a PCIe 4 x16 one: A10, A10G, A30, A40, A6000, L4, L40, RTX 3060, 3090, 4090, 6000 Ada."""


def links_of(name: str) -> Links:
    """The links of a card or of a slice of one; slices of MIG have no peer-to-peer copies (MIG user guide), so PCIe joins them."""
    card, _, is_slice = name.partition("/")
    inside, between, host = _LINKS.get(card, _COMMON)
    return Links(inside_node=(host if is_slice else inside) * GIGABYTE, between_nodes=between * GIGABYTE, to_host=host * GIGABYTE)
