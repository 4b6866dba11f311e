"""Names of optimizers in Hugging Face's trainer and what they mean, and those that its relatives add.

Source of those: axolotl utils/schemas/enums.py, CustomSupportedOptimizers (torchao's 8-bit AdamW).
"""

from __future__ import annotations

from peakgate.readers import trainer
from peakgate.readers.finetuners.values import say
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading

OPTIMIZERS: dict[str, tuple[str, str]] = {
    **{name: (row.name, row.implementation) for name, row in trainer.OPTIMIZERS.items()},
    "adamw": ("adamw", ""),
    "adam": ("adam", ""),
    "lamb": ("lamb", ""),
    "ao_adamw_8bit": ("adamw-8bit", ""),
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
