"""What settings of Megatron Core mean, whoever states them: Megatron-LM's flags, Megatron-Bridge's recipes, NeMo's YAML.

The readers of these formats bring their settings under the names of Megatron-LM's flags (`Options`); `read.py` makes fields of them.
Sources below: M = Megatron-LM at d98e8a64 (August 2026), megatron/training/arguments.py unless another file is named.
"""
