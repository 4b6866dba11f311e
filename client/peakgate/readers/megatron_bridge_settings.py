"""ConfigContainer's fields, a recipe's row and NeMo 2's paths, under the names of Megatron-LM's flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from peakgate.readers.convert import flag
from peakgate.readers.megatron_bridge_recipes import Recipe
from peakgate.readers.megatron_flags import canonical
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.settings import Settings

PREFIXES = (
    "trainer.strategy.ddp",
    "trainer.strategy",
    "trainer.plugins",
    "model.config",
    "data",
    "optim.config",
    "model",
    "train",
    "optimizer",
    "ddp",
    "comm_overlap",
    "dist",
    "validation",
)
"""Sections whose fields have the flags' names, weakest first; `mixed_precision` overrides all of them (MixedPrecisionConfig.setup)."""

TOKENS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "tp": (("tensor_model_parallel_size", None),),
    "pp": (("pipeline_model_parallel_size", None),),
    "vp": (("virtual_pipeline_model_parallel_size", None),),
    "cp": (("context_parallel_size", None),),
    "ep": (("expert_model_parallel_size", None),),
    "etp": (("expert_tensor_parallel_size", None),),
    "sp": (("sequence_parallel", "true"),),
    "seq": (("seq_length", None),),
    "mbs": (("micro_batch_size", None),),
    "gbs": (("global_batch_size", None),),
    "overlap": (("overlap_grad_reduce", "true"),),
    "cef": (("cross_entropy_loss_fusion", "true"),),
    "full": (("recompute_granularity", "full"),),
    "selective": (("recompute_granularity", "selective"),),
    "modules": (("recompute_modules", None),),
    "uniform": (("recompute_method", "uniform"), ("recompute_num_layers", None)),
    "block": (("recompute_method", "block"), ("recompute_num_layers", None)),
    "ends": (("account_for_embedding_in_pipeline_split", "true"), ("account_for_loss_in_pipeline_split", "true")),
    "first": (("num_layers_in_first_pipeline_stage", None),),
    "last": (("num_layers_in_last_pipeline_stage", None),),
    "mtp": (("mtp_num_layers", None),),
    "flex": (("moe_token_dispatcher_type", "flex"),),
    "graphs": (("cuda_graph_impl", None),),
    "fsdp": (("use_megatron_fsdp", "true"),),
    "cp_comm": (("cp_comm_type", None),),
}
"""Tokens of a recipe's row -> fields; None: the token's own value."""

AWARE = ("main_params_dtype", "main_grads_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")


EXCHANGED = {"model.moe_token_dispatcher_type": "alltoall"}
"""What every provider of a routed model sets (models/qwen/qwen3_moe_bridge.py, models/deepseek/deepseek_v3_bridge.py …)."""


def recipe_settings(recipe: Recipe | None, place: Place) -> Settings:
    """A recipe's row as settings of ConfigContainer; without one what all have in common."""
    if recipe is None:
        return Settings({path: Stated(value, place) for path, value in EXCHANGED.items()})
    found: dict[str, str] = EXCHANGED | {
        "model.use_distributed_optimizer": "false" if "replicated" in recipe.settings else "true",
        "mixed_precision": recipe.settings.get("precision", "bf16_mixed"),
    }
    for token, value in recipe.settings.items():
        found |= {f"model.{name}": value if fixed is None else fixed for name, fixed in TOKENS.get(token, ())}
    if "aware" in recipe.settings:
        found["model.use_precision_aware_optimizer"] = "true"
        found |= {f"model.{name}": kind for name, kind in zip(AWARE, recipe.settings["aware"].split(","), strict=False)}
    if recipe.settings.get("grads") == "bf16":
        found["mixed_precision.grad_reduce_in_fp32"] = "false"
    return Settings({path: Stated(value, place) for path, value in found.items()})


def canonical_of(settings: Settings) -> Settings:
    """All sections laid over one another; a field that is stated wins over the recipe's, whatever its section."""
    leaves: dict[str, Stated] = {}
    for path, stated in _sections(settings):
        name = path.rpartition(".")[2]
        known = leaves.get(name)
        if known is None or known.place.kind == DEFAULT or stated.place.kind != DEFAULT:
            leaves[name] = stated
    _sequence(leaves, settings)
    _distributed(leaves, settings)
    _precision(leaves, settings)
    groups = leaves.get("num_query_groups")
    if groups is not None and groups.value is not None:
        leaves["group_query_attention"] = Stated(True, groups.place)
    tuned = settings("checkpoint.finetune")
    if tuned is not None:
        leaves["finetune"] = tuned
    kind = settings("optimizer.optimizer")
    if kind is not None:
        leaves["optimizer"] = kind
    return canonical(Settings(leaves))


def _sections(settings: Settings) -> Iterator[tuple[str, Stated]]:
    """Leaves one level below a section, section by section."""
    for prefix in PREFIXES:
        start = f"{prefix}."
        for path, stated in settings.leaves.items():
            if path.startswith(start) and "." not in path[len(start) :] and stated.value is not None:
                yield path, stated


def _sequence(leaves: dict[str, Stated], settings: Settings) -> None:
    """The dataset owns the sequence length (run_recipe.py: sync_model_dataset_sequence_length); packed, it is the pack's."""
    names = (
        "dataset.offline_packing_specs.packed_sequence_size",
        "dataset.packed_sequence_specs.packed_sequence_size",
        "dataset.seq_length",
        "dataset.sequence_length",
        "data.seq_length",
    )
    stated = settings.first(*names)
    if stated is not None:
        leaves["seq_length"] = stated


def _distributed(leaves: dict[str, Stated], settings: Settings) -> None:
    """One of the two switches is enough (config.py: _validate_and_sync_distributed_optimizer_settings)."""
    found = [settings(f"{section}.use_distributed_optimizer") for section in ("ddp", "optimizer", "trainer.strategy.ddp", "optim.config")]
    on = next((stated for stated in found if stated is not None and _is(stated, flag)), None)
    if on is not None:
        leaves["use_distributed_optimizer"] = on


def _precision(leaves: dict[str, Stated], settings: Settings) -> None:
    """A name such as bf16_with_fp8_delayed_scaling_mixed, its fields over it (mixed_precision.py); NeMo 2: trainer.plugins.precision."""
    named = settings.first("mixed_precision", "trainer.plugins.precision", "trainer.precision")
    if named is not None:
        for name, value in _named(named.text.strip("'\"()").lower().replace("-", "_")).items():
            leaves[name] = Stated(value, named.place)
    leaves.update(
        {name: stated for name, stated in settings.under("mixed_precision").leaves.items() if "." not in name and stated.value is not None}
    )
    reduced = leaves.pop("grad_reduce_in_fp32", None)
    if reduced is not None:
        leaves["accumulate_allreduce_grads_in_fp32"] = reduced


def _named(name: str) -> dict[str, object]:
    half = "fp16" if name.startswith(("fp16", "16")) else "bf16" if "bf16" in name else ""
    if not half:
        return {}
    found: dict[str, object] = {half: True, "accumulate_allreduce_grads_in_fp32": half == "bf16"}
    for word, recipe, gathers in (
        ("fp8_delayed", "delayed", True),
        ("mxfp8", "mxfp8", True),
        ("fp8_current", "tensorwise", True),
        ("fp8_subchannel", "blockwise", False),
    ):
        if word in name:
            found |= {"fp8": "hybrid", "fp8_recipe": recipe, "fp8_param_gather": gathers}
    if "fp8_current" in name:
        found["first_last_layers_bf16"] = True
    if "nanov2" in name:
        found["fp8_recipe"] = "blockwise"
    if "nvfp4" in name:
        found["fp4"] = "e2m1"
    return found


def _is(stated: Stated, convert: Callable[[Stated], bool]) -> bool:
    try:
        return convert(stated)
    except ValueError:
        return False
