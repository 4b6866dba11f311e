"""What a program's name says of its work: whether it trains at all, and by a method that is not the next token's loss."""

from __future__ import annotations

import re

from peakgate.readers.place import Place
from peakgate.readers.reading import Reading

OTHER = frozenset(
    {
        "preprocess",
        "preprocessing",
        "prepare",
        "tokenize",
        "tokenization",
        "convert",
        "conversion",
        "eval",
        "evaluate",
        "evaluation",
        "generate",
        "generation",
        "inference",
        "infer",
        "predict",
        "merge",
        "download",
        "upload",
        "push",
        "serve",
        "server",
        "serving",
        "export",
        "analyze",
        "analyse",
        "chat",
        "chatbot",
        "demo",
        "gradio",
        "quantize",
        "benchmark",
        "bench",
        "test",
    }
)
TRAINING = re.compile(r"train|finetun|fine_tun|sft|dpo|grpo|pretrain|lora")


def trains(program: str) -> bool:
    """Whether the program's name leaves open that it trains."""
    words = _words(program)
    return words[0] not in OTHER and (bool(TRAINING.search("_".join(words))) or not OTHER.intersection(words))


METHODS = frozenset(
    {"dpo", "kto", "orpo", "simpo", "cpo", "ppo", "grpo", "rloo", "rlhf", "reward", "raft", "distill", "distillation", "gkd", "reinforce"}
)


def state_other_method(program: str, reading: Reading, place: Place) -> None:
    """A script of another method, whose loss and models only the readers of its library know: it must not pass for fine-tuning."""
    for word in sorted(METHODS.intersection(re.split(r"[^a-z]+", program.lower().removesuffix(".py")))):
        reading.cannot_say(f"the method {word} of a script of its own", place)


def _words(program: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", program.lower().removesuffix(".py"))
