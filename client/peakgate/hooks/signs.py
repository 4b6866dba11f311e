"""Whether a text may start a training at all, by its words alone: what has none of them is let through before any reader is loaded.

Wide on purpose: what passes here is read in earnest, and let through as well when no reader knows it.
"""

from __future__ import annotations

import re

_STARTERS = (
    r"torchrun|torch\.distributed|accelerate|deepspeed|horovodrun|composer|colossalai|litgpt|axolotl|llamafactory|swift|openrlhf"
    r"|megatron|torchtitan|nemo|verl|llmfoundry|\btune\s+run|\btrl\b|ft_launcher|hyperpodrun|dlrover"
)
_WORDS = r"train|tun(?:e|ing)\b|\bsft\b|dpo|\bppo\b|grpo|lora|batch[_-]?size|epochs?\b|\bloss\b|learning[_-]rate|--lr\b|optim"
_FILES = r"\.(?:ya?ml|json|toml|sh|bash|sbatch|slurm)\b|\bsource\s|^\s*\.\s"
_OWN = r"#\s*PEAKGATE"
_CERTAIN = (
    r"(?<!s)train(?!ed)|tun(?:e|ing)\b|\bsft\b|dpo|\bppo\b|grpo|(?<!enable[-_])(?<!max[-_])lora(?![-_]modules)|batch[_-]?size|epochs?\b"
    r"|\bloss\b|learning[_-]rate|--lr\b|optim"
)
"""The same without what other programs have: `--pretrained`, constraints, the adapters that a server takes."""

_SIGNS = re.compile("|".join((_STARTERS, _WORDS, _FILES, _OWN)), re.IGNORECASE | re.MULTILINE)
_TRAINING = re.compile("|".join((_STARTERS, _CERTAIN, _OWN)), re.IGNORECASE | re.MULTILINE)


_APART = re.compile(r"&&|\|\||[;\n]")
_EXAMPLE = re.compile(r"\brun_\w+\.py\b")
_JUDGES, _TRAINS = re.compile(r"--do[_-](?:eval|predict)\b"), re.compile(r"--do[_-]train\b(?![= ]+[Ff]alse)")


def may_train(text: str) -> bool:
    """Whether a script or a command has a word of a launcher, of training, of a config file, or starts another script."""
    return _SIGNS.search(text) is not None


def names_training(text: str) -> bool:
    """Whether it has a word of a launcher or of training itself, but for example scripts that are told to evaluate alone: a script of
    another name may do anything."""
    return any(_TRAINING.search(each) and not _evaluates(each) for each in _APART.split(text.replace("\\\n", " ")))


def _evaluates(command: str) -> bool:
    """Whether it is an example of transformers' that trains where it is told to, and is not."""
    return bool(_EXAMPLE.search(command) and _JUDGES.search(command)) and not _TRAINS.search(command)
