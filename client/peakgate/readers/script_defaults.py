"""Defaults of well-known scripts that differ from those of the libraries below them."""

from __future__ import annotations

from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

QLORA: dict[str, object] = {
    "bits": 4,
    "double_quant": True,
    "quant_type": "nf4",
    "lora_r": 64,
    "lora_dropout": 0.0,
    "lora_modules": "all",
    "source_max_len": 1024,
    "target_max_len": 256,
    "optim": "paged_adamw_32bit",
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 16,
    "gradient_checkpointing": True,
}
"""artidoro/qlora qlora.py: ModelArguments, DataArguments, TrainingArguments; find_all_linear_names."""

SCRIPTS = {"qlora.py": QLORA}


def with_defaults(settings: Settings, program: str) -> Settings:
    """The settings over those of the script; qlora.py loads what is not quantised, and makes its adapters, in bfloat16 under --bf16."""
    own = SCRIPTS.get(program)
    if own is None:
        return settings
    place = Place(kind=DEFAULT, key=program)
    further = {"dtype": "bfloat16", "adapter_dtype": "bfloat16"} if truth(settings("bf16")) else {}
    return Settings({key: Stated(value, place) for key, value in {**own, **further}.items()}).merged(settings)
