"""Readers of Trainer scripts take any words, files and configurations without an error."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import read_soundly

from peakgate.readers.arguments import arguments_of
from peakgate.readers.deepspeed import DeepSpeed
from peakgate.readers.files import GivenFiles
from peakgate.readers.huggingface import HuggingFace
from peakgate.readers.launch import Launch, Reader
from peakgate.readers.peft import DROPOUTS, IN_4_BITS, KINDS, RANKS, SWITCHES, TARGETS
from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.plain import Plain
from peakgate.readers.plain_flags import BATCHES, CHECKPOINTS, MICRO_BATCHES, SEQUENCES
from peakgate.readers.settings import Settings
from peakgate.readers.trainer_settings import ALIASES
from peakgate.readers.trl import Trl

READERS: tuple[Reader, ...] = (Trl(), HuggingFace(), DeepSpeed(), Plain())

FURTHER = """
fsdp fsdp_config optim bf16 fp16 model_name_or_path model config beta use_vllm packing vllm_mode max_completion_length max_prompt_length
loss_type use_peft bits use_liger_kernel gradient_accumulation_steps zero_stage offload accelerate_config num_processes mixed_precision
model_type config_overrides use_reentrant lmbda eval_strategy dtype label_smoothing_factor
"""
DEEP = """
zero_optimization stage offload_optimizer device ratio train_batch_size train_micro_batch_size_per_gpu enabled optimizer type params
distributed_type deepspeed_config fsdp_sharding_strategy hidden_size parallelism_config fsdp_version
"""
TABLES = (
    RANKS,
    SWITCHES,
    TARGETS,
    DROPOUTS,
    KINDS,
    IN_4_BITS,
    BATCHES,
    MICRO_BATCHES,
    CHECKPOINTS,
    SEQUENCES,
    tuple(ALIASES),
    tuple(ALIASES.values()),
)
NAMES = sorted({name for table in TABLES for name in table} | set(FURTHER.split()))
VALUES = st.one_of(
    st.sampled_from(
        ["true", "false", "auto", "", "0", "-1", "1e400", "nan", "99999999999999999999", "{", '{"a": {"b": 1}}', "c.yaml", "ds.json", "m"]
    ),
    st.text(max_size=20),
)
PROGRAMS = st.sampled_from(["train.py", "trl", "sft.py", "grpo.py", "run_clm.py", "a.b.c", "", "gkd.py", "ppo.py", "main.py"])
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(), max_size=3))
KEYS = st.sampled_from([*NAMES, *DEEP.split()])
TREES = st.recursive(LEAF, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=12)


def run(launch: Launch) -> None:
    """Every reader reads the launch, whether it knows it or not."""
    for reader in READERS:
        reader.recognises(launch)
        read_soundly(reader, launch)


@given(
    PROGRAMS,
    st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=12),
    st.dictionaries(st.sampled_from(["c.yaml", "ds.json", "m/config.json"]), TREES),
)
def test_any_words_and_files(program: str, flags: list[tuple[str, str]], trees: dict[str, object]) -> None:
    """Flags with values of any kind, files of any structure."""
    words = [program, *(word for name, value in flags for word in (f"--{name}", value))]
    files = GivenFiles({name: json.dumps(tree) for name, tree in trees.items()})
    own = arguments_of([Stated(word, Place(kind=FLAG)) for word in ("--config_file", "c.yaml")])
    launchers = {"accelerate": own} if "c.yaml" in trees else {}
    run(Launch(words=[Stated(word, Place(kind=FLAG)) for word in words], files=files, launchers=list(launchers), launcher_flags=launchers))


@given(st.dictionaries(KEYS, LEAF, max_size=8), st.text(max_size=40))
def test_any_configuration(leaves: dict[str, object], text: str) -> None:
    """A file that stands by itself, and one that is no file of its kind."""
    place = Place(kind="yaml", file="x.yaml", line=1)
    config = Settings({key: Stated(value, place) for key, value in leaves.items()})
    run(Launch(config=config, config_file="x.yaml"))
    run(Launch(words=[Stated(w, Place(kind=FLAG)) for w in ("train.py", "--deepspeed", "ds.json")], files=GivenFiles({"ds.json": text})))
