"""What a plan costs: the seconds of its step, from FLOP and bytes, part by part.

Lesson 6, section 3, orders fixes by cost. On its own example (1.3B, 8 sequences of 2,048 tokens, eight A100 of a node, eager attention)
that order comes out but for three places, none of which a constant was bent for:

- Selective recomputation costs 12 %, more than a micro-batch of half the size (0.4 %): its FLOP are 5 %, and the unfused core moves its
  scores once more. Under FlashAttention it costs 2 %; of a model of 175 billion weights 3 %.
- ZeRO-3 costs nothing (0.95, as ZeRO-1 and ZeRO-2 with 0.96): NVLink hides its 1.5 times the volume behind compute, and each GPU steps an
  eighth of the weights. Without a fast link it costs what its volume says.
- Tensor parallelism over two GPUs costs 3 %, less than full checkpointing with 31 %; over eight it costs 37 %.
"""

from __future__ import annotations

from peakgate.memory.step_time.card import Card, card_of
from peakgate.memory.step_time.cost import step_time
from peakgate.memory.step_time.parts import PARTS, StepTime, relative
from peakgate.memory.step_time.sizes import Sizes, sizes_of
from peakgate.memory.step_time.why import why

__all__ = ["PARTS", "Card", "Sizes", "StepTime", "card_of", "relative", "sizes_of", "step_time", "why"]
