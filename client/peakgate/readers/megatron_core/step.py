"""What a step keeps and how it runs: recomputation, attention, dropout, loss, graphs, details of Megatron.

Sources: M _add_training_args, _add_regularization_args, _add_transformer_engine_args; megatron/core/transformer/transformer_config.py.
"""

from __future__ import annotations

from peakgate.readers.convert import number, off, one_of
from peakgate.readers.megatron_core.model import layers_of
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.reading import Row, apply

ROWS = (
    Row("attention_dropout", "dropout.attention", number),
    Row("hidden_dropout", "dropout.hidden", number),
    Row(
        "transformer_impl",
        "framework.megatron.transformer_impl",
        one_of({"transformer_engine": "transformer_engine", "local": "local", "inference_optimized": None}),
    ),
    Row("no_gradient_accumulation_fusion", "framework.megatron.gradient_accumulation_fusion", off),
)
SWITCHES = {
    "overlap_grad_reduce": "framework.megatron.overlap_grad_reduce",
    "cross_entropy_loss_fusion": "framework.megatron.cross_entropy_fusion",
}

BACKENDS = {"flash": "flash", "fused": "flash", "unfused": "eager", "local": "eager", "auto": None}
"""M --attention-backend (AttnBackend): cuDNN's fused kernel keeps what flash attention keeps."""

MODULES = ("core_attn", "mla_up_proj", "mlp", "moe_act", "layernorm")
"""M recompute_modules that the job document has words for."""

GRANULARITY, METHOD, COUNT = "recompute_granularity", "recompute_method", "recompute_num_layers"


def read_step(options: Options) -> None:
    """States what a step keeps."""
    apply(ROWS, options, options.reading)
    for name, path in SWITCHES.items():
        options.state(path, options.on(name) or None, name)
    if options.dropout is not None and options.complete:
        for path in ("dropout.attention", "dropout.hidden"):
            options.reading.default(path, options.dropout, options.whose)
    _attention(options)
    _recompute(options)
    _graphs(options)
    if (options.count("cpu_offloading_num_layers") or 0) > 0:
        options.state("offload.activations", "cpu", "cpu_offloading_num_layers")
        options.cannot_say("activations of some layers in the host's memory", "cpu_offloading_num_layers")


def _attention(options: Options) -> None:
    backend = options.word("attention_backend").removeprefix("attnbackend.")
    if backend in BACKENDS:
        options.state("attention.implementation", BACKENDS[backend], "attention_backend")
        return
    if backend:
        options.reading.warnings.append(f"attention_backend: {backend[:40]!r} is unknown ({options.place('attention_backend')})")
    local = options.word("transformer_impl") == "local"
    name = next((name for name in ("use_flash_attn", "use_flash_attn_v2", "use_flash_attn_triton") if options.on(name)), "")
    if name:
        options.state("attention.implementation", "flash", name)
        if local:
            options.cannot_say("flash attention without Transformer Engine", name)
    elif local:  # megatron/core/transformer/dot_product_attention.py
        options.reading.default("attention.implementation", "eager", options.whose)


def _recompute(options: Options) -> None:
    granularity = options.word(GRANULARITY)
    if options.on("recompute_activations"):  # M validate_args: it is the short form of selective
        granularity = "selective"
    if granularity == "selective":
        _selective(options)
    elif granularity == "full":
        _full(options)
    elif granularity:
        options.reading.warnings.append(f"{GRANULARITY}: {granularity[:40]!r} is neither full nor selective ({options.place(GRANULARITY)})")
    if options.on("moe_layer_recompute"):
        options.cannot_say("recomputation of whole routed layers' feed-forward parts", "moe_layer_recompute")


def _selective(options: Options) -> None:
    options.state("checkpointing.mode", "selective", "recompute_activations" if options.on("recompute_activations") else GRANULARITY)
    modules = options.words("recompute_modules")
    known = [module for module in modules if module in MODULES]
    if known:
        options.state("checkpointing.modules", list(known), "recompute_modules")
    for module in modules:
        if module not in MODULES:
            options.cannot_say(f"recomputation of {module[:40]}", "recompute_modules")


def _full(options: Options) -> None:
    """uniform: one stored input for so many layers; block: so many layers of each chunk of a stage."""
    method, count = options.word(METHOD), options.count(COUNT)
    if method == "block" and count == 0:
        options.state("checkpointing.mode", "none", COUNT)
        return
    options.state("checkpointing.mode", "full", GRANULARITY, "checkpoint_activations")
    if method == "block" and count:
        options.state("checkpointing.layers", _of_stage(options, count), COUNT)
    elif method in ("uniform", "") and count and count > 1:
        options.state("checkpointing.every", count, COUNT)
    if options.on("distribute_saved_activations"):
        options.cannot_say("stored inputs spread over tensor parallel ranks", "distribute_saved_activations")


def _of_stage(options: Options, count: int) -> int:
    """Layers of a whole stage: each chunk recomputes its own first ones."""
    chunks = options.reading.get("parallelism.virtual_pipeline")
    if not isinstance(chunks, int) or chunks < 2:
        return count
    layers, stages = layers_of(options) or 0, options.size("pipeline_model_parallel_size", 1)
    chunk = layers // (stages * chunks)
    return min(count, chunk or count) * chunks


def _graphs(options: Options) -> None:
    """M validate_args: --enable-cuda-graph is impl local, --external-cuda-graph is impl transformer_engine."""
    names = ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph")
    kind = options.word("cuda_graph_impl", "none")
    if kind == "none" and not (options.on("enable_cuda_graph") or options.on("external_cuda_graph")):
        return
    scopes = [*options.words("cuda_graph_modules"), *options.words("cuda_graph_scope")]
    if kind == "full_iteration" or "full_iteration" in scopes:
        options.state("framework.cuda_graphs", "full-iteration", *names)
        return
    options.state("framework.cuda_graphs", "per-layer", *(name for name in names if options(name) and options.word(name) != "none"))
    if set(scopes) - {"full"}:
        options.cannot_say("CUDA graphs of parts of a layer", "cuda_graph_modules", "cuda_graph_scope")
