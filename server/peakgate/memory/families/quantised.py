"""Frozen 4-bit weights under adapters, and under autocast.

Sources: peft tuners/lora/bnb.py (Linear4bit.forward), bitsandbytes nn/modules.py (Linear4bit.forward).
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
lora_quantised x                             # the product is cloned; what the adapters add is cast, not the sum
  y = linear_base x -> out
  y = contiguous y
  x = to_adapter x
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  _s = scale _b
  o = to_compute _s
  return add y o
lora_quantised_autocast x                    # autocast casts inside the products: nothing else is
  y = linear_base x -> out
  y = contiguous y
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  o = scale _b
  return add y o
lora_int8 x                                  # peft tuners/lora/bnb.py, Linear8bitLt.forward: nothing is cloned
  y = linear_base x -> out
  x = to_adapter x
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  _s = scale _b
  o = to_compute _s
  return add y o
lora_int8_autocast x                         # the 8-bit product takes its input as it comes: nothing is cast for it
  y = linear_base x -> out
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  o = scale _b
  return add y o
linear_4bit_autocast x                       # in the compute format, and back to the format of the input
  _h = to_half x
  _y = linear_4bit _h -> out
  return like _y x
""")
