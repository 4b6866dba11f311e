"""FSDP as Hugging Face's trainer has it: words of a strategy, and a config whose keys may begin with `fsdp_`; both by accelerate's names.

Source: transformers training_args.py (fsdp, fsdp_config).
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.readers import accelerate
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

STRATEGIES = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")
PREFIX = "fsdp_"


def by_accelerates_names(settings: Settings) -> Settings:
    """The keys with `fsdp_` in front."""
    return Settings({f"{PREFIX}{key.removeprefix(PREFIX)}": stated for key, stated in settings.leaves.items()})


def state_fsdp(options: Stated | None, settings: Settings, reading: Reading) -> None:
    """States sharding, version and offload. `options`: the words of the trainer's `fsdp`; `settings`: its config by accelerate's names."""
    out, source = settings.merged(Settings()), options or next(iter(settings.leaves.values()), None)
    if source is None:
        return
    words = _words(options)
    strategy = next((word for word in words if word in STRATEGIES), "")
    if options is not None and strategy and out("fsdp_sharding_strategy") is None:
        out.override("fsdp_sharding_strategy", replace(options, value=strategy.upper()))
    if options is not None and "offload" in words:
        out.override("fsdp_offload_params", replace(options, value=True))
    accelerate.state_fsdp(out, reading, source.place)


def _words(options: Stated | None) -> list[str]:
    if options is None:
        return []
    parts = options.value if isinstance(options.value, list) else options.text.replace(",", " ").split()
    return [word for part in parts for word in str(part).strip().lower().split()]
