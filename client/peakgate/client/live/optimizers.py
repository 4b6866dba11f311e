"""A torch optimizer as the document names it.

Sources: torch optim/optimizer.py (_default_to_fused_or_foreach: foreach on a GPU when neither is asked for); bitsandbytes optim/*.py (names
of classes, args.optim_bits); transformers optimization.py (Adafactor).
"""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.client.live.plain import attribute, place
from peakgate.readers.reading import Reading

NAMES = {
    "AdamW": "adamw",
    "Adam": "adam",
    "SGD": "sgd",
    "Adafactor": "adafactor",
    "Muon": "muon",
    "Lion": "lion",
    "AdamW8bit": "adamw-8bit",
    "Adam8bit": "adam-8bit",
    "PagedAdamW": "paged-adamw",
    "PagedAdamW32bit": "paged-adamw",
    "PagedAdamW8bit": "paged-adamw-8bit",
    "FusedAdam": "adamw",
    "DeepSpeedCPUAdam": "adamw",
}
IN_8_BITS = {"adamw": "adamw-8bit", "adam": "adam-8bit", "paged-adamw": "paged-adamw-8bit"}


def state_optimizer(optimizer: object, reading: Reading) -> None:
    """Name and implementation; one that has no name in the document is noted as not read."""
    inner = attribute(optimizer, "optimizer")  # accelerate's and DeepSpeed's wrappers
    if inner is not None and hasattr(inner, "param_groups"):
        optimizer = inner
    kind, where = type(optimizer).__name__, place("optimizer")
    defaults = attribute(optimizer, "defaults")
    words: Mapping[str, object] = defaults if isinstance(defaults, Mapping) else {}
    name = NAMES.get(kind)
    if name is None:
        reading.cannot_say(f"the optimizer {kind[:40]}", where)
        return
    if name == "sgd" and words.get("momentum"):
        name = "sgd-momentum"
    if attribute(optimizer, "args.optim_bits") == 8:
        name = IN_8_BITS.get(name, name)
    reading.state("optimizer.name", name, where)
    if type(optimizer).__module__.startswith("torch.optim") and "foreach" in words:
        reading.state("optimizer.implementation", _implementation(words), where)
    elif kind == "FusedAdam":
        reading.state("optimizer.implementation", "fused", where)
    if kind == "DeepSpeedCPUAdam":
        reading.state("offload.optimizer", "cpu", where)


def _implementation(words: Mapping[str, object]) -> str:
    if words.get("fused"):
        return "fused"
    return "for-loop" if words.get("foreach") is False else "foreach"
