"""TRL's methods: which one a launch runs, and what its own settings mean.

Sources: TRL 1.10 cli/commands/training.py, scripts/*.py, trainer/{sft,dpo,kto,reward,grpo}_config.py and *_trainer.py (create the reference
model only without adapters, a beta of 0 or log-probabilities made before), experimental/{orpo,gkd,ppo}; MIGRATION.md (vllm_mode) and the
history of the configs: max_seq_length until 0.19, gradient_checkpointing and bf16 on from 0.20 on and max_prompt_length
until 0.28.
"""

from __future__ import annotations

import re

from peakgate.readers.convert import number
from peakgate.readers.launch import Launch
from peakgate.readers.place import DEFAULT, Place
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

COUNTED = {
    "sft": "sft",
    "dpo": "dpo",
    "kto": "kto",
    "orpo": "orpo",
    "reward": "reward",
    "grpo": "grpo",
    "gspo": "grpo",
    "gkd": "distill",
    "ppo": "ppo",
}
"""Words of a command or a script's name -> the document's method."""

STABLE = {"sft": "sft", "dpo": "dpo", "kto": "kto", "reward": "reward", "grpo": "grpo", "rloo": "rloo", "gspo": "grpo", "gkd": "sft"}
"""Methods whose config and trainer stand under trl/trainer/, and by which name (GKD's are SFT's with a teacher); those of others have a
folder of their own under trl/experimental/."""

UNCOUNTED = (
    "online_dpo",
    "nash_md",
    "rloo",
    "cpo",
    "bco",
    "xpo",
    "prm",
    "tpo",
    "gold",
    "minillm",
    "sdft",
    "sdpo",
    "ssd",
    "async_grpo",
    "distillation",
    "papo",
)
"""Methods that no word of the document means."""

ORDER = (*UNCOUNTED, "grpo", "gspo", "gkd", "ppo", "orpo", "kto", "dpo", "reward", "sft")

OTHERS = ("openrlhf", "verl", "nemo", "llamafactory", "llama_factory", "axolotl", "swift", "openinstruct", "open_instruct", "torchtune")
"""Projects whose scripts are named alike and whose arguments are not TRL's."""

SIGNS = (
    ("grpo", ("num_generations", "max_completion_length", "reward_funcs", "vllm_mode")),
    ("dpo", ("precompute_ref_log_probs", "ref_model_mixup_alpha", "rpo_alpha")),
    ("sft", ("dataset_text_field", "assistant_only_loss", "completion_only_loss", "packing_strategy", "eval_packing")),
)
"""Arguments of one method alone."""


def module_of(method: str) -> str:
    """The stem of the files that hold a method's defaults."""
    return f"TRL trainer/{STABLE[method]}" if method in STABLE else f"TRL experimental/{method}/{method}"


def method_of(launch: Launch, settings: Settings) -> str:
    """The method by the command, the script's name or its arguments; empty when it is none of TRL's."""
    path = launch.path.lower()
    if any(each in path for each in OTHERS):
        return ""
    if launch.program == "trl":
        first = launch.arguments.positional[0].text if launch.arguments.positional else ""
        return _word(first) or first
    if "trl" in launch.launchers:
        return _word(launch.program) or launch.program
    if not launch.words:
        return _of_file(launch, settings)
    named = _word(re.sub(r"\.py$", "", path.rpartition("/")[2]).rpartition(".")[2])
    return named or _by_arguments(settings)


def _of_file(launch: Launch, settings: Settings) -> str:
    """A --config file that stands by itself: by the folders and the name that it has, or by its arguments."""
    if settings("model_name_or_path") is None or any(settings(name) is not None for name in ("stage", "finetuning_type", "base_model")):
        return ""
    named = next((word for part in reversed(launch.config_file.split("/")) if (word := _word(part.rpartition(".")[0] or part))), "")
    return named or _by_arguments(settings)


def _by_arguments(settings: Settings) -> str:
    return next((method for method, names in SIGNS if any(settings(name) is not None for name in names)), "")


def _word(name: str) -> str:
    plain = f"_{re.sub(r'[^a-z0-9]+', '_', name.lower())}_"
    return next((each for each in ORDER if f"_{each}_" in plain), "")


EARLIER = (("max_seq_length", (0, 20)), ("evaluation_strategy", (0, 20)), ("max_prompt_length", (0, 29)), ("torch_dtype", (0, 29)))
"""Arguments that were gone in a version."""

NOW = (9, 0)


def before(settings: Settings) -> tuple[int, int]:
    """The version that the arguments must be older than."""
    return min((version for name, version in EARLIER if settings(name) is not None), default=NOW)


def state_method(method: str, settings: Settings, reading: Reading, place: Place) -> None:
    """The method's name, its other models, and what it generates with."""
    name = COUNTED.get(method)
    if name is None:
        reading.cannot_say(f"the method {method[:40]}", place)
        return
    reading.state("method.name", name, place)
    if name in ("dpo", "kto"):
        _reference(reading, f"{module_of(method)}_trainer.py", ready=switched_on(settings, "precompute_ref_log_probs"))
    elif name == "grpo":
        _grpo(settings, reading)
    elif name == "distill":
        _distillation(settings, reading, place)
    elif name == "ppo":
        for role in ("critic", "reward"):
            _model(settings, "reward_model_path", f"method.{role}.preset", reading)


def _reference(reading: Reading, trainer: str, *, ready: Place | None) -> None:
    """A second model, the base without its adapters, or none when its log-probabilities are made before the training."""
    if ready is not None:
        reading.state("method.reference", "none", ready)
    elif reading.get("lora.rank") is not None:
        reading.default("method.reference", "adapter", f"{trainer}: under adapters the base is the reference")
    else:
        reading.default("method.reference", "full", f"{trainer}: ref_model is made from the model's own files")


def _grpo(settings: Settings, reading: Reading) -> None:
    beta = settings("beta")
    try:
        weight = number(beta) if beta is not None else 0.0
    except ValueError:
        weight = 1.0
    if weight and beta is not None:
        kind = "adapter" if reading.get("lora.rank") is not None else "full"
        reading.state("method.reference", kind, beta.place)
    elif beta is not None:
        reading.state("method.reference", "none", beta.place)
    else:
        reading.default("method.reference", "none", "TRL trainer/grpo_config.py: beta=0.0")
    _model(settings, "reward_model_name_or_path", "method.reward.preset", reading)
    _generation(settings, reading)


def _generation(settings: Settings, reading: Reading) -> None:
    """vLLM beside the training or elsewhere; without it the policy itself generates, whose cache no field counts."""
    place = switched_on(settings, "use_vllm")
    if place is None:
        stated = settings("use_vllm")
        reading.cannot_say(
            "answers that the policy generates itself",
            stated.place if stated is not None else _default("TRL trainer/grpo_config.py: use_vllm=False"),
        )
        return
    mode, elsewhere = settings("vllm_mode"), settings.first("vllm_server_host", "vllm_server_base_url", "vllm_server_port", "vllm_device")
    here = elsewhere is None and before(settings) == NOW
    colocated = here if mode is None else mode.text.strip().lower() == "colocate"
    where = mode.place if mode is not None else elsewhere.place if elsewhere is not None else place
    if not colocated:
        reading.state("method.generation.mode", "separate", where)
        return
    reading.state("method.generation.colocated", value=True, place=where)
    apply([Row("vllm_gpu_memory_utilization", "method.generation.memory_fraction", number)], settings, reading)
    reading.default("method.generation.memory_fraction", 0.3, "TRL trainer/grpo_config.py: vllm_gpu_memory_utilization=0.3")
    sleep = settings("vllm_enable_sleep_mode")
    if sleep is not None and (on := truth(sleep)) is not None:
        reading.state("method.generation.sleep", on, sleep.place)
    else:
        reading.default("method.generation.sleep", value=False, whose="TRL trainer/grpo_config.py: vllm_enable_sleep_mode=False")


def _default(whose: str) -> Place:
    return Place(kind=DEFAULT, key=whose)


def _distillation(settings: Settings, reading: Reading, place: Place) -> None:
    """GKD's teacher; the share of batches that the student generates is not counted."""
    _model(settings, "teacher_model_name_or_path", "method.teacher.preset", reading)
    share = settings("lmbda")
    if share is None or share.text.strip("0. "):
        reading.cannot_say("answers that the student generates itself", share.place if share is not None else place)


def _model(settings: Settings, key: str, path: str, reading: Reading) -> None:
    stated = settings(key)
    if stated is not None and isinstance(stated.value, str):
        reading.state(path, stated.text.strip(), stated.place)
