"""How long TRL's sequences are, and whether they are padded.

Sources: TRL 1.10 trainer/{sft,dpo,kto,reward,grpo}_config.py: max_length=1024, packing, padding_free, max_completion_length=512 (256 until
0.28, when a prompt had max_prompt_length=512); sft_trainer.py: packing fills sequences to max_length.
"""

from __future__ import annotations

from peakgate.readers.finetuners.values import count
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth
from peakgate.readers.trl_methods import COUNTED, NOW, before, module_of

LENGTH, TARGET, PACKED, KIND = "batch.sequence_length", "batch.target_length", "batch.packed", "batch.sequence_length_is"


def state_lengths(method: str, settings: Settings, reading: Reading) -> None:
    """Sequences are cut at a limit and padded, unless they are packed."""
    if method in ("grpo", "gspo"):
        _rollout_lengths(settings, reading)
        return
    stated = settings.first("max_seq_length", "max_length", "max_seq_len")
    size = count(stated)
    if stated is not None and size:
        reading.state(LENGTH, size, stated.place)
    elif stated is None and method in COUNTED and method != "ppo":  # whose prompts are not cut
        reading.default(LENGTH, 1024, f"{module_of(method)}_config.py: max_length=1024")
    packing = settings("packing")
    free = switched_on(settings, "padding_free")
    on = truth(packing) is True
    if packing is not None and (on or free is None):
        reading.state(PACKED, on, packing.place)
        reading.state(KIND, "exact" if on else "cap", packing.place)
    elif free is not None:
        reading.state(PACKED, value=True, place=free)
        reading.default(KIND, "cap", "TRL: examples are cut at max_length")
    else:
        reading.default(PACKED, value=False, whose="TRL: examples are cut and padded")
        reading.default(KIND, "cap", "TRL: examples are cut at max_length")


def _rollout_lengths(settings: Settings, reading: Reading) -> None:
    """A prompt and its answer; prompts had a limit of 512 until 0.28 and have none since."""
    prompt, answer = settings("max_prompt_length"), settings("max_completion_length")
    completion = count(answer) or (256 if (0, 20) < before(settings) < NOW else 512)
    if answer is not None and count(answer):
        reading.state(TARGET, completion, answer.place)
    else:
        reading.default(TARGET, completion, "TRL trainer/grpo_config.py: max_completion_length")
    longest = settings.first("vllm_max_model_length", "vllm_max_model_len")
    whole = count(longest)
    if prompt is not None and count(prompt):
        reading.state(LENGTH, count(prompt) + completion, prompt.place)
    elif longest is not None and whole > completion:
        reading.state(LENGTH, whole, longest.place)
    else:
        reading.default(LENGTH, 512 + completion, "TRL trainer/grpo_config.py until 0.28: max_prompt_length=512, and the answer")
    reading.default(PACKED, value=False, whose="TRL: prompts and answers are padded")
    reading.default(KIND, "cap", "TRL: answers end where they end")
