"""Reads one object, so that the first review finds every reader loaded."""

from __future__ import annotations

from peakgate.hooks.kubernetes.admission import Admission
from peakgate.hooks.kubernetes.reading import Read, read_object

COMMAND = ["torchrun", "--nproc-per-node=8", "train.py", "--model_name_or_path", "gpt2", "--per_device_train_batch_size", "1"]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "warm", "annotations": {"peakgate.io/batch.sequence_length": "1024"}},
    "spec": {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "containers": [{"name": "train", "command": COMMAND, "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
    },
}


def warm() -> Read:
    """What was read, which nobody needs."""
    return read_object(Admission(uid="warm", kind="Pod", name="warm", object=POD))
