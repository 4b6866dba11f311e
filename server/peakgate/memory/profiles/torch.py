"""A plain PyTorch loop with torch.nn's own modules, as nanoGPT's train.py and model.py.

Sources: github.com/karpathy/nanoGPT model.py (nn.GELU, F.layer_norm, scaled_dot_product_attention, F.cross_entropy of the logits as
they are), train.py.
"""

from __future__ import annotations

from peakgate.memory.profiles import torch_pipeline
from peakgate.memory.profiles.profile import Profile

PROFILE = Profile(
    renames={"gelu_new": "gelu"}, losses={"full": "plain"}, masks_padding=False, resident=torch_pipeline.resident, splits_backward=True
)
