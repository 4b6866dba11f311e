"""What a PyTorch model says of itself: configuration, formats, what is trained, attention, checkpoints, adapters, wrappers.

Sources: transformers modeling_utils.py (is_activation_checkpointing, _gradient_checkpointing_func, config._attn_implementation); peft
peft_model.py (peft_config) and tuners/lora/config.py; torch nn/parallel/distributed.py, distributed/fsdp (FullyShardedDataParallel;
fully_shard puts FSDP before a class's name), _dynamo/eval_frame.py (OptimizedModule._orig_mod); deepspeed runtime/engine.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from peakgate.client.live.plain import attribute, mapping_of, place, plain
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

WRAPPERS = {
    "DistributedDataParallel": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "DataParallel": "",
    "DeepSpeedEngine": "",
    "OptimizedModule": "",
}
"""By class: the sharding that it means, if it means one."""

CHECKPOINTED = ("is_activation_checkpointing", "is_gradient_checkpointing")
"""Today's name first: from transformers 5.24 on the other one only warns, so it is asked for where the first is missing."""

MOST_NAMES = 200
MODEL = "model"
NOT_WHOLE = ("lora_", "base_layer", "original_module", "modules_to_save")
"""Parts of names that adapters bring into a model."""


def unwrapped(model: object) -> tuple[object, list[str]]:
    """The model inside its wrappers, and their classes from outside in."""
    found: list[str] = []
    while (name := type(model).__name__) in WRAPPERS and len(found) < len(WRAPPERS):
        inner = attribute(model, "_orig_mod") if name == "OptimizedModule" else attribute(model, "module")
        if inner is None:
            break
        found.append(name)
        model = inner
    return model, found


def parameters_of(model: object) -> list[tuple[str, object]]:
    """Names and parameters."""
    named = getattr(model, "named_parameters", None)
    return list(cast("Iterable[tuple[str, object]]", named())) if callable(named) else []


def dtype_of(parameters: Iterable[object]) -> str:
    """The format of most elements among those of floating point; empty without any."""
    sizes: dict[str, int] = {}
    for each in parameters:
        name = str(plain(attribute(each, "dtype")))
        if "float" in name:
            sizes[name] = sizes.get(name, 0) + elements(each)
    return max(sizes, key=sizes.__getitem__, default="")


def elements(parameter: object) -> int:
    """Of a parameter; a quantised one counts what it stands for."""
    shape = attribute(parameter, "quant_state.shape")
    if shape is not None:
        size = 1
        for edge in cast("Iterable[int]", shape):
            size *= int(edge)
        return size
    count = getattr(parameter, "numel", None)
    return int(count()) if callable(count) else 0


def is_trained(parameter: object) -> bool:
    """Whether it gets gradients."""
    return bool(attribute(parameter, "requires_grad"))


def state_model(model: object, reading: Reading) -> None:
    """The model by its configuration; without one, by its number of parameters."""
    config = plain(mapping_of(model, "config"))
    if isinstance(config, dict) and config.get("model_type"):
        config.pop("quantization_config", None)
        reading.state("model.hf_config", {key: each for key, each in config.items() if each is not None}, place(MODEL, "config"))
        return
    count = sum(elements(each) for _, each in parameters_of(model))
    if count:
        reading.state("model.parameters", count, place(MODEL, "parameters()"))


def state_frozen(model: object, reading: Reading) -> None:
    """The outermost modules of which nothing is trained, when something else is and there are no adapters."""
    parameters = parameters_of(model)
    if attribute(model, "peft_config") or not any(is_trained(each) for _, each in parameters):
        return
    frozen = list(_frozen_modules([(name, is_trained(each)) for name, each in parameters]))
    if frozen:
        reading.state("frozen", list(frozen[:MOST_NAMES]), place(MODEL, "requires_grad"))


def _frozen_modules(parameters: list[tuple[str, bool]]) -> Iterator[str]:
    trained = {name.rsplit(".", depth)[0] for name, on in parameters if on for depth in range(1, name.count(".") + 1)}
    seen: set[str] = set()
    for name, on in parameters:
        if on:
            continue
        parts = name.split(".")
        prefixes = (".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        outermost = next(prefix for prefix in prefixes if prefix == name or prefix not in trained)
        module = outermost if outermost != name else name.rpartition(".")[0] or name
        if module not in seen:
            seen.add(module)
            yield module


def model_settings(model: object) -> Settings:
    """What the model says by the names of scripts' arguments: its format, attention, checkpoints, quantisation and adapters."""
    out = Settings()

    def add(name: str, value: object, where: str) -> None:
        if value is not None and value != "" and value != []:
            out.leaves[name] = Stated(value, place(MODEL, where))

    parameters = [each for _, each in parameters_of(model)]
    add("dtype", dtype_of(parameters), "dtype")
    add("attn_implementation", plain(attribute(model, "config._attn_implementation")), "config._attn_implementation")
    switch = next((name for name in CHECKPOINTED if attribute(model, name) is not None), "")
    if switch and attribute(model, switch):
        add("gradient_checkpointing", value=True, where=switch)
        add("use_reentrant", _reentrant(model), "gradient_checkpointing_enable")
    quantised = mapping_of(model, "config.quantization_config")
    for name in ("load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant"):
        add(name, plain(quantised.get(name)), f"config.quantization_config.{name}")
    for name, value in _adapter(model).items():
        add(name, value, "peft_config")
    return out


def _reentrant(model: object) -> object:
    """The keyword that the checkpoint function was bound to."""
    modules = getattr(model, "modules", None)
    for module in cast("Iterable[object]", modules()) if callable(modules) else ():
        words = attribute(module, "_gradient_checkpointing_func.keywords")
        if isinstance(words, dict):
            return words.get("use_reentrant")
    return None


def _adapter(model: object) -> dict[str, object]:
    """The first adapter by the names of TRL's arguments."""
    adapters = list(mapping_of(model, "peft_config").values())
    if not adapters:
        return {}
    config = plain(mapping_of(adapters[0], ""))
    words = config if isinstance(config, dict) else {}
    trained = [each for name, each in parameters_of(model) if is_trained(each) and "lora_" in name]
    return {
        "use_peft": True,
        "lora_r": words.get("r"),
        "lora_dropout": words.get("lora_dropout"),
        "lora_target_modules": words.get("target_modules"),
        "lora_modules_to_save": words.get("modules_to_save"),
        "use_dora": words.get("use_dora"),
        "adapter_dtype": dtype_of(trained),
        "peft_type": words.get("peft_type"),
    }
