"""torchtitan's own configs: what a launch means that names one of them and states the rest by flags.

Sources: torchtitan models/*/train_configs/*.toml at v0.2.2 and models/*/config_registry.py at b5bcd76c6, whose names agree; where the two
differ the row has what both say, and the age of the launch decides (`REGISTRY`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.settings import Settings

_ROWS = """
# name                    model       flavor         sequences length checkpointing more
llama3_debugmodel         llama3      debugmodel     8 2048 2         parallelism.pipeline_parallel_schedule=Interleaved1F1B
llama3_8b                 llama3      8B             1 8192 op
llama3_8b_mxfp8           llama3      8B             1 8192 op        compile.enable=true compile.components=model model.converters=mx
llama3_70b                llama3      70B            8 8192 full      parallelism.tensor_parallel_degree=8
llama3_405b               llama3      405B           2 8192 full      parallelism.tensor_parallel_degree=8 compile.enable=true model.converters=float8 quantize.linear.float8.enable_fsdp_float8_all_gather=true
llama4_debugmodel         llama4      debugmodel     8 2048 op
llama4_17bx16e            llama4      17bx16e        8 8192 full      parallelism.tensor_parallel_degree=8 parallelism.expert_tensor_parallel_degree=8
llama4_17bx128e           llama4      17bx128e       1 8192 full      parallelism.tensor_parallel_degree=8 parallelism.pipeline_parallel_degree=4 parallelism.expert_tensor_parallel_degree=8
deepseek_v3_debugmodel    deepseek_v3 debugmodel     8 2048 op
deepseek_v3_16b           deepseek_v3 16B            4 4096 op        parallelism.expert_parallel_degree=8 parallelism.pipeline_parallel_schedule=Interleaved1F1B compile.enable=true compile.components=loss
deepseek_v3_671b          deepseek_v3 671B           4 4096 op        parallelism.pipeline_parallel_schedule=Interleaved1F1B compile.enable=true compile.components=loss
qwen3_debugmodel          qwen3       debugmodel     8 2048 op
qwen3_0_6b                qwen3       0.6B           4 4096 op
qwen3_1_7b                qwen3       1.7B           4 4096 op
qwen3_14b                 qwen3       14B            4 4096 full
qwen3_32b                 qwen3       32B            2 4096 full
qwen3_30b_a3b             qwen3       30B-A3B        2 4096 full
qwen3_moe_debug           qwen3       debugmodel_moe 4 4096 op
gpt_oss_debugmodel        gpt_oss     debugmodel     8 2048 none
gpt_oss_20b               gpt_oss     20b            1 8192 full
gpt_oss_120b              gpt_oss     120b           1 8192 full
sft_qwen3_8b_math         qwen3       8B             1 2048 op
"""  # noqa: E501 - a row is a line

REGISTRY = {
    "llama3_debugmodel": ("activation_checkpoint.selective_ac_option=op",),
    "gpt_oss_debugmodel": ("activation_checkpoint.mode=selective", "activation_checkpoint.selective_ac_option=op"),
    "llama3_405b": ("quantize.linear.float8.enable_fsdp_float8_all_gather=false",),
    "deepseek_v3_671b": ("parallelism.expert_parallel_degree=2",),
}
"""What a config of the registry says that the TOML file of the name did not."""

OF_FILES = "version=0.2.2"
"""The last version that had these files."""

JOB_CONFIG = (
    "model.name=llama3",
    "model.flavor=debugmodel",
    "training.local_batch_size=8",
    "training.seq_len=2048",
    "activation_checkpoint.mode=selective",
    "activation_checkpoint.selective_ac_option=2",
)
"""What a TOML file that says nothing means (torchtitan config/job_config.py, config_manager.py before it: the same since 2024)."""


def defaults(pairs: Iterable[str], whose: str) -> Settings:
    """Settings that stand as a default of somebody's."""
    place = Place(kind=DEFAULT, key=whose)
    return Settings({key: Stated(value, place) for key, _, value in (pair.partition("=") for pair in pairs)})


def _row(line: str) -> tuple[str, tuple[str, ...]]:
    name, model, flavor, sequences, length, checkpointing, *more = line.split()
    mode = "selective" if checkpointing in ("op", "2") else checkpointing
    option = (f"activation_checkpoint.selective_ac_option={checkpointing}",) if mode == "selective" else ()
    pairs = (
        f"model.name={model}",
        f"model.flavor={flavor}",
        f"training.local_batch_size={sequences}",
        f"training.seq_len={length}",
        f"activation_checkpoint.mode={mode}",
    )
    return name, (*pairs, *option, *more)


CONFIGS = dict(map(_row, (line for line in _ROWS.strip().splitlines() if not line.startswith("#"))))
"""Name -> `key=value` of each setting that matters."""


def of_registry(name: str) -> Settings | None:
    """The settings of a function of a config registry; None for one that is not torchtitan's own."""
    pairs = CONFIGS.get(name)
    return defaults((*pairs, "loss.implementation=chunked", *REGISTRY.get(name, ())), f"torchtitan's config {name}") if pairs else None


def of_file(path: str) -> Settings | None:
    """The settings of a TOML file of torchtitan's own tree that is not at hand; None for any other."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if len(parts) < 3 or parts[-2] != "train_configs":
        return None
    stem = PurePosixPath(path).stem.replace(".", "_")
    name = f"{parts[-3]}_debugmodel" if stem == "debug_model" else stem
    return defaults((*CONFIGS[name], OF_FILES), f"torchtitan's {stem}.toml") if name in CONFIGS else None
