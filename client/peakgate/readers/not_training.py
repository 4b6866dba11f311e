"""What a program's name says of its work: whether it trains at all, and by a method that is not the next token's loss."""

from __future__ import annotations

import re

from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

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
        "deploy",
        "rollout",
        "sample",
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


FURTHER = {
    "teacher_model_name_or_path": "a teacher",
    "teacher_model": "a teacher",
    "ref_model_name_or_path": "a reference model",
    "ref_model": "a reference model",
    "reward_model_name_or_path": "a reward model",
    "critic_model_name_or_path": "an actor beside a critic",
    "rlhf_type": "a method of preferences or rewards",
    "query_max_len": "a contrastive loss of queries and passages",
    "passage_max_len": "a contrastive loss of queries and passages",
}
"""Arguments that only other methods have."""


def state_other_method(launch: Launch, settings: Settings, reading: Reading) -> None:
    """A script of another method, whose loss and models only the readers of its library know: it must not pass for fine-tuning."""
    first = launch.arguments.positional[0].text if launch.arguments.positional else ""
    words = METHODS.intersection(re.split(r"[^a-z]+", f"{launch.program.removesuffix('.py')} {first}"[:200].lower()))
    for word in sorted(words):
        reading.cannot_say(f"the method {word} of a script of its own", launch.words[0].place)
    further = {what: stated.place for key, what in FURTHER.items() if (stated := settings(key)) is not None and stated.text.strip()}
    for what, place in further.items():
        reading.cannot_say(what, place)


def _words(program: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", program.lower().removesuffix(".py"))
