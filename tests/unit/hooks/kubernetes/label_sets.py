"""Labels of real nodes, each with its public source."""

from __future__ import annotations

DGX_A100_OLD = {
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.family": "ampere",
    "nvidia.com/gpu.memory": "39538",
    "nvidia.com/gpu.product": "A100-SXM4-40GB",
}
"""NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md, Verifying Everything Works."""

V100_N = {
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "16384",
    "nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB-N",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/mig.capable": "false",
}
"""NVIDIA/k8s-device-plugin PR 503, description, step 1."""

MIG_SINGLE = {
    "nvidia.com/mig.strategy": "single",
    "nvidia.com/gpu.product": "A100-SXM4-40GB-MIG-1g.5gb",
    "nvidia.com/gpu.count": "56",
    "nvidia.com/gpu.memory": "5120",
}
"""NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md, MIG 'single' strategy."""

MIG_MIXED = {
    "nvidia.com/gpu.product": "A100-SXM4-40GB",
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/mig-2g.10gb.count": "3",
    "nvidia.com/mig-2g.10gb.memory": "9984",
    "nvidia.com/mig-3g.20gb.count": "3",
    "nvidia.com/mig-3g.20gb.memory": "20096",
}
"""The profile's name is nominal: gpu-operator's documentation of MIG, strategy mixed, and a node of it in public test code (20096)."""

TIME_SLICED = {
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.product": "NVIDIA-RTX-2000-Ada-Generation-SHARED",
    "nvidia.com/gpu.memory": "16380",
    "nvidia.com/gpu.replicas": "3",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/mig.capable": "false",
}
"""A node's labels in the notes of a public cluster (driver 590.48.01), quoted whole in the GPU's part."""

MPS = {
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "143771",
    "nvidia.com/gpu.product": "NVIDIA-H200-SHARED",
    "nvidia.com/gpu.replicas": "10",
    "nvidia.com/gpu.sharing-strategy": "mps",
    "nvidia.com/mps.capable": "true",
}
"""A public walk through MPS with the device plugin, its node sliced ten times; the memory is the catalogue's of the card."""

G5_OLD_TIME_SLICED = {
    "node.kubernetes.io/instance-type": "g5.xlarge",
    "nvidia.com/gpu.product": "NVIDIA-A10G-SHARED",
    "nvidia.com/gpu.memory": "23028",
    "nvidia.com/gpu.replicas": "10",
}
"""NVIDIA/gpu-feature-discovery#76: a g5.xlarge shared in time, before there was a label of the strategy."""

EIDF = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
"""Values of nvidia.com/gpu.product on a university's cluster: uoe-eidf-cluster-users/eidf-epcc-cluster#7."""
