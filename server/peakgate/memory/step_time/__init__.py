"""What a plan costs: the seconds of its step, from FLOP and bytes, part by part."""

from __future__ import annotations

from peakgate.memory.step_time.card import Card, card_of
from peakgate.memory.step_time.cost import step_time
from peakgate.memory.step_time.parts import PARTS, StepTime, relative
from peakgate.memory.step_time.sizes import Sizes, sizes_of
from peakgate.memory.step_time.why import why

__all__ = ["PARTS", "Card", "Sizes", "StepTime", "card_of", "relative", "sizes_of", "step_time", "why"]
