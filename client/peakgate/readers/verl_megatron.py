"""verl's actor on Megatron-LM.

Sources: verl trainer/config/engine/megatron.yaml, actor/megatron_actor.yaml (defaults: a distributed optimizer, sequence parallelism with
tensor parallelism, bfloat16), workers/megatron_workers.py (`override_transformer_config` reaches Megatron-LM's TransformerConfig).
"""

from __future__ import annotations

from peakgate.readers.convert import positive
from peakgate.readers.finetuners.values import amount, count, off, on, say, say_or_default, words
from peakgate.readers.reading import Reading, Row, Scalar, apply
from peakgate.readers.settings import Settings

OWN = "verl (trainer/config/engine/megatron.yaml)"

DEGREES = (
    Row("tensor_model_parallel_size", "parallelism.tensor", positive),
    Row("pipeline_model_parallel_size", "parallelism.pipeline", positive),
    Row("virtual_pipeline_model_parallel_size", "parallelism.virtual_pipeline", positive),
    Row("context_parallel_size", "parallelism.context", positive),
    Row("expert_model_parallel_size", "parallelism.expert", positive),
)


def state_megatron(settings: Settings, reading: Reading, world: int) -> int:
    """States degrees, formats and recomputation; returns the data degree, 0 where it is not known."""
    apply(DEGREES, settings, reading)
    tensor = count(settings("tensor_model_parallel_size")) or 1
    parts = tensor * (count(settings("pipeline_model_parallel_size")) or 1) * (count(settings("context_parallel_size")) or 1)
    split = settings("sequence_parallel")
    if tensor > 1:
        say_or_default(reading, "parallelism.sequence_parallel", not off(split), split, OWN)
    spread = settings("use_distributed_optimizer")
    say_or_default(reading, "framework.megatron.distributed_optimizer", not off(spread), spread, OWN)
    reading.default("precision.recipe", "megatron-bf16", OWN)
    reading.default("attention.implementation", "flash", OWN)
    core = settings.under("override_transformer_config")
    _recomputation(core, reading)
    if (exchange := core("moe_enable_deepep")) is not None and on(exchange):
        reading.cannot_say("buffers of DeepEP and its like are not counted", exchange.place)
    if (wide := settings("expert_tensor_parallel_size")) is not None and count(wide) > 1:
        reading.cannot_say(f"expert_tensor_parallel_size {count(wide)}", wide.place)
    return world // parts


def state_optimizer(settings: Settings, reading: Reading) -> None:
    """`override_optimizer_config` reaches Megatron-LM's OptimizerConfig (utils/megatron/optimizer.py: init_megatron_optim_config)."""
    moved, share = settings("optimizer_cpu_offload"), settings("optimizer_offload_fraction")
    if moved is None or not on(moved):
        return
    if share is not None and amount(share) != 1:
        reading.cannot_say(f"optimizer_offload_fraction {share.text[:20]}", share.place)
    else:
        say(reading, "offload.optimizer", "cpu", moved)


def _recomputation(settings: Settings, reading: Reading) -> None:
    stated, way, layers = settings("recompute_granularity"), settings("recompute_method"), settings("recompute_num_layers")
    if stated is None or stated.text not in ("full", "selective"):
        return
    say(reading, "checkpointing.mode", stated.text, stated)
    if stated.text == "full" and layers is not None and count(layers):
        say(reading, "checkpointing.layers" if way is not None and way.text == "block" else "checkpointing.every", count(layers), layers)
    modules: list[Scalar] = [*words(settings("recompute_modules"))]
    if stated.text == "selective" and modules and (named := settings("recompute_modules")) is not None:
        say(reading, "checkpointing.modules", modules, named)
