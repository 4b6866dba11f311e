"""Low-rank adapters of the reinforcement-learning trainers, which name them alike."""

from __future__ import annotations

from peakgate.readers.convert import number, positive
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import count
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

LORA = (Row("lora_rank", "lora.rank", positive), Row("lora_dropout", "lora.dropout", number))


def state_lora(settings: Settings, reading: Reading, whose: str) -> bool:
    """Rank, dropout and targets; whether there are adapters. `whose`: where all linear layers are the default targets."""
    rank = settings("lora_rank")
    if rank is None or not count(rank):
        return False
    apply(LORA, settings, reading)
    named = settings("target_modules")
    if named is None or not state_targets(named, reading):
        reading.default("lora.targets", ["all-linear"], whose)
    return True
