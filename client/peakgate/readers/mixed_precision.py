"""What a Trainer's bf16 and fp16 switches and the format that the model is loaded in make of its states.

Sources: transformers 5.24 training_args.py (mixed_precision) and modeling_utils.py (from_pretrained: dtype); accelerate 1.15
accelerator.py (prepare_model: autocast around the model's forward; FSDP's trained parameters are upcast to float32 under mixed precision),
utils/fsdp_utils.py (fsdp2_prepare_model: the same). The Trainer loads a model whose format is not stated in float32 (before transformers 5;
later in the checkpoint's own).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

DTYPES = {
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
}

IN_FLOAT32 = ("gpt2", "bert", "t5", "bart", "electra", "gpt-neo", "pegasus", "xlnet", "vit")
"""Words in the names of models whose checkpoints are in float32; those of later years are in 16 bits (their config.json: torch_dtype)."""

STORAGE = ("bnb_4bit_quant_storage", "bnb_4bit_quant_storage_dtype")
"""What a 4-bit base is stored as under FSDP, which is the format of all its parameters (peft examples/sft/utils.py)."""

AUTO_FROM = 5
"""The version of transformers from which on a model is loaded in its checkpoint's format."""

RECIPE = "precision.recipe"
STATES = ("parameters", "gradients", "optimizer_states", "compute")


@dataclass(frozen=True, slots=True)
class Mixed:
    """`autocast`: bf16, fp16 or nothing; `dtype`: the format that the model is loaded in, empty where it is not stated."""

    autocast: str = ""
    dtype: str = ""
    place: Place | None = None
    """Of what decides."""
    fp8: Place | None = None


def mixed_of(
    settings: Settings, reading: Reading, outside: Stated | None, *, on_by_default: bool = False, loaded: Stated | None = None
) -> Mixed:
    """Both, from the script's arguments and what accelerate was told outside of them. `on_by_default`: bf16 unless fp16 (TRL); `loaded`:
    the format of a model for which none is stated, where that is not float32."""
    named = settings("mixed_precision") or outside
    autocast, place = "", None
    for word in ("fp16", "bf16"):
        if (stated := settings(word)) is not None and truth(stated):
            autocast, place = word, stated.place
    fp8 = None
    if not autocast and named is not None and truth(settings("bf16")) is None:
        word = named.text.strip().lower()
        autocast, place = (word, named.place) if word in ("bf16", "fp16") else ("bf16", named.place) if word == "fp8" else ("", named.place)
        fp8 = named.place if word == "fp8" else None
    if not autocast and on_by_default and truth(settings("bf16")) is None:
        autocast, place = "bf16", None
    stated = settings.first("dtype", "model_dtype", *STORAGE) or loaded
    dtype = dtype_of(stated, reading)
    return Mixed(autocast, dtype, place or (stated.place if stated is not None and dtype else None), fp8)


def dtype_of(stated: Stated | None, reading: Reading) -> str:
    """The format by name; `auto` is that of the checkpoint."""
    if stated is None:
        return ""
    word = stated.text.strip().lower().removeprefix("torch.")
    if word == "auto":
        return of_checkpoint(reading)
    return DTYPES.get(word, "")


def loaded_without_a_word(version: Stated | None) -> Stated | None:
    """The format that a script loads a model in when it names none: the checkpoint's from transformers 5 on (from_pretrained: dtype=None
    is auto), float32 before, which needs no word."""
    major = version.text.partition(".")[0] if version is not None else ""
    if version is None or not major.isdigit() or int(major[:4]) < AUTO_FROM:
        return None
    return Stated("auto", Place(kind=DEFAULT, key=f"transformers {version.text[:20]} ({version.place}): dtype=auto"))


def of_checkpoint(reading: Reading) -> str:
    """The format of the checkpoint that is trained: its config's, else what models of its name have."""
    config = reading.get("model.hf_config")
    if isinstance(config, dict):
        return DTYPES.get(str(config.get("torch_dtype") or config.get("dtype") or "float32"), "float32")
    name = str(reading.get("model.preset") or "").lower()
    return "float32" if any(word in name for word in IN_FLOAT32) else "bfloat16"


def state_precision(mixed: Mixed, reading: Reading, *, sharding: str, whose: str) -> None:
    """The recipe under DDP or FSDP; `whose` default the autocast is when it is not stated."""
    if mixed.place is None and not mixed.autocast:
        return
    half = mixed.dtype in ("bfloat16", "float16")
    if sharding in ("fsdp", "hsdp") and mixed.autocast:
        recipe = "fsdp-bf16"
    elif mixed.autocast and not half:
        recipe = f"amp-{mixed.autocast}"
    else:
        recipe = "bf16" if half else "fp32"
    if mixed.place is None:
        reading.default(RECIPE, recipe, whose)
    else:
        reading.state(RECIPE, recipe, mixed.place)
    if mixed.place is not None and recipe == "fsdp-bf16" and mixed.autocast == "fp16":
        reading.state("precision.compute", "float16", mixed.place)
    if mixed.place is not None and recipe == "bf16" and mixed.dtype == "float16":
        for state in STATES:
            reading.state(f"precision.{state}", "float16", mixed.place)
    if mixed.fp8 is not None:
        reading.state("precision.compute", "float8", mixed.fp8)
