"""Megatron-LM: pretrain_gpt.py and its like, their flags, --yaml-cfg, the test cases' MODEL_ARGS; and Megatron-DeepSpeed's variants.

Sources: Megatron-LM at d98e8a64, megatron/training/arguments.py and yaml_arguments.py; names of earlier versions from its releases 2.5 to
core 0.12. Megatron-DeepSpeed: `megatron_deepspeed.py`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers.launch import Launch
from peakgate.readers.megatron_core.model import BERT, GPT, HYBRID, T5
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.placement import world_of
from peakgate.readers.megatron_core.read import read_core
from peakgate.readers.megatron_deepspeed import is_deepspeed, read_deepspeed
from peakgate.readers.megatron_flags import canonical
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import FLAG, YAML, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

SIGNATURE = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "num_attention_heads",
    "max_position_embeddings",
    "encoder_num_layers",
    "use_mcore_models",
    "micro_batch_size",
    "num_layers",
    "use_checkpoint_args",
    "hybrid_layer_pattern",
    "use_distributed_optimizer",
    "make_vocab_size_divisible_by",
    "recompute_granularity",
)
"""Flags that together no other program has."""

PROGRAMS = (
    "pretrain_gpt",
    "pretrain_bert",
    "pretrain_t5",
    "pretrain_mamba",
    "pretrain_hybrid",
    "pretrain_retro",
    "pretrain_ict",
    "pretrain_vlm",
)
TEST_CASE = "MODEL_ARGS"
"""A section of tests/functional_tests/test_cases/*/model_config.yaml."""

NO_TRAINING = re.compile(r"generat|inference|server|convert|export|preprocess|eval|prompt|quantize|prune|merge|split|analyz")
"""In the names of programs that take the same flags."""

OTHERS = ("megatron", "swift", "swift.cli.main")
"""ms-swift's commands take Megatron's flags beside a model's name."""

BRIDGE = ("run_recipe.py", "run_script.py", "setup_experiment.py", "custom_setup_experiment.py", "launch_with_nemo_run.py", "bootstrap.py")
"""Megatron-Bridge's runners have Megatron's flags beside a recipe."""

SEES = re.compile(r"(^|[/_\-])(vlm?|vision|multimodal|clip|llava)([/_.\-]|$)")
"""In the paths of programs that train a vision tower beside the language model."""

TASKS = {"MNLI": "bert", "QQP": "bert", "RACE": "bert"}
"""Tasks of tasks/main.py that train, each a BERT with a head of classes (tasks/glue/finetune.py, tasks/race/finetune.py)."""


class MegatronReader:
    """Flags of Megatron-LM's argument parser."""

    name = "megatron"

    def recognises(self, launch: Launch) -> bool:
        """By the program and a flag or two of its own; a config by its sections. Servers, converters and evaluations train nothing."""
        if not launch.words:
            mode = launch.config("MODE")
            return (launch.config.has(TEST_CASE) and (mode is None or mode.text != "inference")) or (
                launch.config.has("language_model") and launch.config.has("model_parallel")
            )
        flags = launch.arguments.flags
        task = flags("task")
        if (
            launch.program in (*OTHERS, *BRIDGE)
            or NO_TRAINING.search(launch.program.lower())
            or (task is not None and task.text.upper() not in TASKS)
        ):
            return False
        if flags("yaml_cfg") is not None and _program(launch) in PROGRAMS:
            return True
        known = sum(1 for name in SIGNATURE if flags(name) is not None)
        return known >= 3 or (known >= 1 and _program(launch) in PROGRAMS)

    def read(self, launch: Launch) -> Reading:
        """What the flags, or the config in their place, say."""
        reading = Reading()
        options = Options(canonical(_settings(launch, reading)), reading)
        kind, world = _kind(launch, options), world_of(launch)
        _frame(launch, options)
        if is_deepspeed(options):
            read_core(options, kind, world, states=False)
            read_deepspeed(options, launch, world)
        else:
            read_core(options, kind, world)
        if _is_own(launch):
            state_own("megatron-deepspeed" if is_deepspeed(options) else self.name, options.settings, launch, reading)
        return reading


def _is_own(launch: Launch) -> bool:
    """Whether the program is Megatron-LM's, or the config one that only its programs read."""
    return not launch.words or _program(launch) in PROGRAMS or launch.arguments.flags("task") is not None


def _program(launch: Launch) -> str:
    return launch.program.removesuffix(".py")


def _settings(launch: Launch, reading: Reading) -> Settings:
    """--yaml-cfg stands in the place of all flags (arguments.py parse_args)."""
    if not launch.words:
        return _of_config(launch.config)
    named = launch.arguments.flags("yaml_cfg")
    if named is None or named.value is True:
        return launch.arguments.flags
    return _of_config(launch.settings_of(named.text, reading))


def _of_config(config: Settings) -> Settings:
    """Leaves by their last name; those of a test case are flags as they stand."""
    if config.has(TEST_CASE):
        flags = config.under(TEST_CASE).leaves
        return Settings({path.lstrip("-").replace("-", "_"): stated for path, stated in flags.items()})
    leaves = {path.rpartition(".")[2]: stated for path, stated in config.leaves.items()} | _activation(config)
    groups = leaves.get("num_query_groups")
    if groups is not None and groups.value is not None:  # core_transformer_config_from_yaml takes them without a switch
        leaves.setdefault("group_query_attention", replace(groups, value=True))
    return Settings(leaves)


def _activation(config: Settings) -> dict[str, Stated]:
    """yaml_arguments.py core_transformer_config_from_yaml: activation_func swiglu and squared_relu in the place of flags."""
    stated = config("language_model.activation_func")
    word = stated.text.lower() if stated is not None else ""
    if stated is None or word not in ("swiglu", "squaredrelu", "squared_relu", "geglu"):
        return {}
    name = {"swiglu": "swiglu", "geglu": "quick_geglu"}.get(word, "squared_relu")
    return {name: replace(stated, value=True)}


def _kind(launch: Launch, options: Options) -> str:
    """Which model the program builds."""
    program = _program(launch) or launch.config_file.lower()
    if (
        options("hybrid_layer_pattern") is not None
        or options("hybrid_override_pattern") is not None
        or program in ("pretrain_mamba", "pretrain_hybrid")
    ):
        return HYBRID
    stacks = options("decoder_num_layers") is not None or (options("decoder_seq_length") is not None and options("num_layers") is None)
    if "t5" in program or stacks:
        return T5
    if options.word("task").upper() in TASKS:
        options.state("model.transformer.head", "classification", "task")
        return TASKS[options.word("task").upper()]
    return BERT if "bert" in program or program == "pretrain_ict" or options("bert_no_binary_head") is not None else GPT


def _frame(launch: Launch, options: Options) -> None:
    """The framework and the method."""
    reading = options.reading
    place = replace(launch.words[0].place, kind=FLAG, key=launch.path) if launch.words else Place(kind=YAML, file=launch.config_file)
    reading.state("framework.name", "deepspeed" if is_deepspeed(options) else "megatron", place)
    if options.on("perform_rl_step"):
        options.state("method.name", "grpo", "perform_rl_step")
    elif options.on("sft") or options("task") is not None:
        options.state("method.name", "sft", "sft", "task")
    else:
        reading.default("method.name", "pretrain", "Megatron-LM")
    if SEES.search(launch.path.lower()):
        reading.cannot_say("a vision tower beside the language model", place)
    off = [launch.environment(name) for name in ("NVTE_FLASH_ATTN", "NVTE_FUSED_ATTN")]
    if all(stated is not None and stated.text == "0" for stated in off) and off[0] is not None and options("attention_backend") is None:
        reading.state("attention.implementation", "eager", off[0].place)
