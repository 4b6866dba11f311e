"""Names of optimizers in Hugging Face's trainer and what they mean.

Sources: transformers training_args.py, OptimizerNames; trainer_optimizer.py (before 5: trainer.py, get_optimizer_cls_and_kwargs), which
names the class and its arguments: `adamw_torch` is torch.optim.AdamW, which picks foreach by itself, `…_fused` adds fused=True, `sgd` has
no momentum.
"""

from __future__ import annotations

from peakgate.readers.finetuners.values import say
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading

OPTIMIZERS: dict[str, tuple[str, str]] = {
    "adamw_torch": ("adamw", "foreach"),
    "adamw_torch_fused": ("adamw", "fused"),
    "adamw_torch_npu_fused": ("adamw", "fused"),
    "adamw_apex_fused": ("adamw", "fused"),
    "adamw_torch_8bit": ("adamw-8bit", ""),
    "ao_adamw_8bit": ("adamw-8bit", ""),
    "adamw_hf": ("adamw", "for-loop"),
    "adamw": ("adamw", ""),
    "adam": ("adam", ""),
    "adafactor": ("adafactor", ""),
    "adamw_8bit": ("adamw-8bit", ""),
    "adamw_bnb_8bit": ("adamw-8bit", ""),
    "paged_adamw_32bit": ("paged-adamw", ""),
    "paged_adamw": ("paged-adamw", ""),
    "paged_adamw_8bit": ("paged-adamw-8bit", ""),
    "lion": ("lion", ""),
    "lion_32bit": ("lion", ""),
    "sgd": ("sgd", "foreach"),
    "muon": ("muon", ""),
    "lamb": ("lamb", ""),
}
"""Name -> optimizer.name and optimizer.implementation (empty: it has one only)."""


def state_optimizer(stated: Stated, reading: Reading) -> None:
    """The optimizer; one that is none of those counted changes the states in a way that no field says."""
    word = stated.text.strip().lower().replace("-", "_").removeprefix("optimizernames.")
    if word not in OPTIMIZERS:
        reading.cannot_say(f"optimizer {stated.text[:60]}", stated.place)
        return
    name, implementation = OPTIMIZERS[word]
    say(reading, "optimizer.name", name, stated)
    if implementation:
        say(reading, "optimizer.implementation", implementation, stated)
