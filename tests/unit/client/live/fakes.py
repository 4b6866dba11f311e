"""Objects with the attributes of PyTorch's, transformers', accelerate's and peft's, without any of them."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
CONFIG |= {"vocab_size": 512, "num_key_value_heads": 2}


class Config(SimpleNamespace):
    """A configuration: attributes, and the dictionary of CONFIG with more."""

    def to_dict(self) -> dict[str, Any]:
        """As transformers' does."""
        return CONFIG | {key: value for key, value in vars(self).items() if not key.startswith("_")}


class Dtype:
    """A format, whose name is its text."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


class Parameter:
    """A parameter that is a number of elements of a format."""

    def __init__(self, size: int = 8, dtype: str = "torch.float32", *, trained: bool = True) -> None:
        self.dtype, self.requires_grad, self._size = Dtype(dtype), trained, size

    def numel(self) -> int:
        """Elements."""
        return self._size


class Model:
    """A model of named parameters."""

    def __init__(self, parameters: dict[str, Parameter] | None = None, config: object = None, **attributes: object) -> None:
        self._parameters = parameters or {"embed.weight": Parameter(512 * 64), "layers.0.mlp.weight": Parameter(64 * 128)}
        self.config = config
        vars(self).update(attributes)

    def named_parameters(self) -> Any:
        """As torch's."""
        return self._parameters.items()

    def modules(self) -> list[object]:
        """Only itself."""
        return [self]


class Option(Enum):
    """FSDPOption and SaveStrategy have values of text."""

    FULL_SHARD = "full_shard"
    NO = "no"


class PeftType(Enum):
    """Of an adapter."""

    LORA = "LORA"


def llama(**changes: object) -> Model:
    """A model with a configuration of transformers."""
    return Model(config=Config(_attn_implementation="flash_attention_2"), **changes)  # type: ignore[arg-type]  # any of its fields


def arguments(**values: object) -> SimpleNamespace:
    """TrainingArguments of which these are stated; the rest is what a new object has."""
    known = {
        "output_dir": "out",
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "bf16": False,
        "fp16": False,
        "gradient_checkpointing": False,
        "optim": "adamw_torch_fused",
        "eval_strategy": "no",
        "deepspeed": None,
        "fsdp": [],
        "fsdp_config": {"min_num_params": 0, "xla": False},
        "torch_compile": False,
        "use_liger_kernel": False,
        "label_smoothing_factor": 0.0,
    } | values
    return SimpleNamespace(**known, to_dict=lambda: dict(known))


def wrapper(name: str, **attributes: object) -> Any:
    """An object of a class of this name."""
    return type(name, (), attributes)()


def trainer(args: object, model: object, *, of: str = "Trainer", module: str = "transformers.trainer", **attributes: object) -> Any:
    """A trainer of the class `of` in `module`."""
    kind = type(of, (), {"__module__": module})
    made: Any = type("Mine", (kind,), {})()
    made.args, made.model = args, model
    vars(made).update(attributes)
    return made
