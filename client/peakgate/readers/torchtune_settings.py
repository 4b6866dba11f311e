"""torchtune's settings and the fields that they mean.

Sources: torchtune recipes/{full,lora}_finetune_{single_device,distributed}.py at bd2a0fc7c: keys, and what holds when one is absent;
torchtune/training/_activation_checkpointing.py (ac_mode, ac_option); torch/optim/adamw.py (foreach when nothing is named).
"""

from __future__ import annotations

from peakgate.readers import convert
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

ROWS = (
    Row("batch_size", "batch.micro_batch_size", convert.positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", convert.positive),
    Row("dtype", "precision.recipe", convert.one_of({"bf16": "bf16", "fp32": "fp32"})),
    Row("optimizer_in_bwd", "optimizer.in_backward", convert.flag),
    Row("enable_activation_offloading", "offload.activations", convert.always("cpu")),
    Row("fsdp_cpu_offload", "offload.parameters", convert.always("cpu")),
    Row("fsdp_cpu_offload", "offload.optimizer", convert.always("cpu")),
    Row("fsdp_reshard_after_forward", "framework.fsdp.reshard_after_forward", convert.flag),
    Row("tensor_parallel_dim", "parallelism.tensor", convert.positive),
    Row("context_parallel_dim", "parallelism.context", convert.positive),
    Row("expert_parallel_dim", "parallelism.expert", convert.positive),
)

ADAPTERS = (
    Row("model.lora_rank", "lora.rank", convert.positive),
    Row("model.lora_dropout", "lora.dropout", convert.number),
    Row("model.use_dora", "lora.method", convert.always("dora")),
)

OPTIMIZERS = {
    "adamw": "adamw",
    "adam": "adam",
    "sgd": "sgd",
    "adafactor": "adafactor",
    "lion": "lion",
    "pagedadamw": "paged-adamw",
    "pagedadamw8bit": "paged-adamw-8bit",
    "adamw8bit": "adamw-8bit",
    "adam8bit": "adam-8bit",
    "_adamw": "adamw",
}
"""Last part of optimizer._component_ in lower case; bitsandbytes' and torchao's names differ in their modules."""

LOSSES = {
    "crossentropyloss": "full",
    "cewithchunkedoutputloss": "chunked",
    "linearcrossentropyloss": "chunked",
}
OF_METHODS = ("dpoloss", "ppoloss", "rsoloss", "simpoloss", "grposimpleloss", "grpoloss", "lineargrpoloss", "grpocompletionloss")
CHUNKS = 8
"""torchtune modules/loss: num_output_chunks = 8."""


def on(settings: Settings, key: str) -> bool:
    """Whether a switch is on."""
    return truth(settings(key)) is True


def read(settings: Settings, reading: Reading) -> None:
    """What more than one setting decides."""
    _optimizer(settings, reading)
    _checkpointing(settings, reading)
    _loss(settings, reading)
    _compile(settings, reading)
    _data(settings, reading)
    _evaluation(settings, reading)
    if on(settings, "enable_fp8_training"):
        reading.state("precision.compute", "float8", settings.leaves["enable_fp8_training"].place)
        recipe = settings("fp8_recipe_name")
        if recipe is not None and "rowwise" in recipe.text:
            reading.cannot_say("8-bit products with a scale for each row", recipe.place)
    quantizer = settings("quantizer._component_")
    if quantizer is not None and "QAT" in quantizer.text and not any("quantised for its product" in each for each in reading.unread):
        reading.cannot_say("quantisation-aware training: every weight is quantised for its product", quantizer.place)


def _optimizer(settings: Settings, reading: Reading) -> None:
    stated = settings("optimizer._component_")
    if stated is None:
        return
    last = stated.text.rsplit(".", 1)[-1].lower()
    if last == "cpuoffloadoptimizer":  # torchao: states and the step on the host, AdamW when nothing is named
        reading.default("optimizer.name", "adamw", "torchao: CPUOffloadOptimizer steps with torch's AdamW")
        reading.state("offload.optimizer", "cpu", stated.place)
        if on(settings, "optimizer.offload_gradients"):
            reading.cannot_say("gradients that go to the host as they are made", settings.leaves["optimizer.offload_gradients"].place)
        return
    name = OPTIMIZERS.get(last)
    if name is None:
        reading.cannot_say(f"the optimizer {stated.text[:60]}", stated.place)
        return
    momentum = settings("optimizer.momentum")
    if name == "sgd" and momentum is not None and momentum.text not in ("0", "0.0"):
        name = "sgd-momentum"
    reading.state("optimizer.name", name, stated.place)
    _implementation(settings, stated, reading)


def _implementation(settings: Settings, stated: Stated, reading: Reading) -> None:
    """torch's own optimizers: fused, or foreach unless that is switched off."""
    if not stated.text.startswith("torch.optim"):
        return
    for key, word in (("fused", "fused"), ("foreach", "foreach")):
        if on(settings, f"optimizer.{key}"):
            reading.state("optimizer.implementation", word, settings.leaves[f"optimizer.{key}"].place)
            return
    foreach = settings("optimizer.foreach")
    if foreach is not None:
        reading.state("optimizer.implementation", "for-loop", foreach.place)
    else:
        reading.default("optimizer.implementation", "foreach", "torch.optim: nothing is named")


def _checkpointing(settings: Settings, reading: Reading) -> None:
    stated, mode = settings("enable_activation_checkpointing"), settings("ac_mode")
    if stated is not None and (on(settings, "enable_activation_checkpointing") or mode is None):
        reading.state("checkpointing.mode", "full" if on(settings, "enable_activation_checkpointing") else "none", stated.place)
        return
    if mode is None:
        return
    option = settings("ac_option")
    if mode.text.lower() == "full" or (mode.text.lower() == "selective" and option is not None and option.text == "1"):
        reading.state("checkpointing.mode", "full", mode.place)
    elif mode.text.lower() == "selective":
        reading.cannot_say("selective checkpointing", mode.place)
    else:
        reading.state("checkpointing.mode", "none", mode.place)


def _loss(settings: Settings, reading: Reading) -> None:
    stated = settings("loss._component_")
    if stated is None:
        return
    last = stated.text.rsplit(".", 1)[-1].lower()
    if last in OF_METHODS or "kl" in last:
        return  # the method's own
    word = LOSSES.get(last)
    if word is None:
        reading.cannot_say(f"the loss {stated.text[:60]}", stated.place)
        return
    reading.state("loss.implementation", word, stated.place)
    chunks = settings("loss.num_output_chunks")
    if word == "chunked" and chunks is not None and chunks.text != str(CHUNKS):
        reading.cannot_say(f"a loss in {chunks.text[:10]} chunks instead of {CHUNKS}", chunks.place)


def _compile(settings: Settings, reading: Reading) -> None:
    """A switch for all of it, or one each for the model, the loss, the step."""
    stated, model = settings("compile"), settings("compile.model")
    parts = [each for path, each in settings.leaves.items() if path.startswith("compile.")]
    if model is None and parts and stated is None:
        reading.state("framework.compile", True, parts[0].place)
    elif model is not None:
        reading.state("framework.compile", on(settings, "compile.model"), model.place)
    elif stated is not None:
        reading.state("framework.compile", on(settings, "compile"), stated.place)
    if settings("compile.loss") is not None and on(settings, "compile.loss") != (reading.get("framework.compile") is True):
        reading.cannot_say("model and loss are not compiled together", settings.leaves["compile.loss"].place)


def _data(settings: Settings, reading: Reading) -> None:
    """Packed data fills every sequence; other data is padded to the longest of a batch, below the tokenizer's limit."""
    key = "dataset.packed" if settings("dataset.packed") is not None else "dataset.0.packed"
    packed, is_packed = settings(key), on(settings, key)
    if packed is not None:
        reading.state("batch.packed", is_packed, packed.place)
    else:
        reading.default("batch.packed", False, "torchtune's datasets: packed = False")
    length = settings.first("dataset.max_seq_len", "dataset.0.max_seq_len", "tokenizer.max_seq_len")
    if length is None:
        return
    try:
        if size := convert.positive(length):
            reading.state("batch.sequence_length", size, length.place)
            reading.default("batch.sequence_length_is", "exact" if is_packed else "cap", "torchtune: packed or not")
    except ValueError as error:
        reading.warnings.append(f"batch.sequence_length: {length.text[:40]!r} cannot be read ({length.place}): {error}")


def _evaluation(settings: Settings, reading: Reading) -> None:
    steps = settings("run_val_every_n_steps")
    if steps is None or not settings.has("dataset_val"):
        return
    size = settings.first("batch_size_val", "batch_size")
    if size is not None and isinstance(size.value, int) and not isinstance(size.value, bool) and 0 < size.value < convert.LARGEST:
        reading.state("evaluate.micro_batch_size", size.value, size.place)
