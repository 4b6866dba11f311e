"""LitGPT's models: a checkpoint's folder or a name of its table as a Hugging Face id, or sizes given in the launch.

Source: litgpt config.py at 26857050 (name and organisation of each config; Config's own fields), scripts/download.py (folders are
checkpoints/<organisation>/<name>).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from peakgate.readers import convert
from peakgate.readers.launch import Launch
from peakgate.readers.named_model import name_config
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

ORGANISATIONS = (
    ("pythia", "EleutherAI"),
    ("stablelm", "stabilityai"),
    ("stablecode", "stabilityai"),
    ("falcon", "tiiuae"),
    ("open_llama", "openlm-research"),
    ("codellama", "codellama"),
    ("llama", "meta-llama"),
    ("meta-llama", "meta-llama"),
    ("olmo", "allenai"),
    ("gemma", "google"),
    ("phi", "microsoft"),
    ("mistral", "mistralai"),
    ("mixtral", "mistralai"),
    ("qwen", "Qwen"),
    ("qwq", "Qwen"),
    ("smollm2", "HuggingFaceTB"),
    ("salamandra", "BSC-LT"),
    ("vicuna", "lmsys"),
)
"""Beginning of a name in lower case -> who publishes it."""

NAMES = {"tiny-llama-1.1b": "TinyLlama/TinyLlama_v1.1", "tiny-llama-1.1b-chat": "TinyLlama/TinyLlama-1.1B-Chat-v1.0"}

SIZES = (
    Row("n_layer", "layers", convert.positive),
    Row("n_embd", "hidden_size", convert.positive),
    Row("n_head", "heads", convert.positive),
    Row("n_query_groups", "kv_heads", convert.positive),
    Row("head_size", "head_dim", convert.positive),
    Row("intermediate_size", "ffn_hidden_size", convert.positive),
    Row("padded_vocab_size", "vocab_size", convert.positive),
)


def model_of(settings: Settings, launch: Launch, reading: Reading) -> None:
    """States the model: the sizes of `model_config`, else a local config.json, else a name."""
    if settings("model_config.n_layer") is not None:
        _sizes(settings.under("model_config"), reading)
        return
    stated = settings.first("checkpoint_dir", "model_name", "initial_checkpoint_dir", "repo_id")
    if stated is None:
        return
    if not name_config(stated, launch.files, reading):
        reading.state("model.preset", name_of(stated.text), stated.place)
    if (tied := settings("train.tie_embeddings")) is not None and tied.text == "true":
        reading.cannot_say("a head tied to the embedding", tied.place)


def name_of(text: str) -> str:
    """The Hugging Face id of a folder below checkpoints/, or of a name of the table."""
    parts = PurePosixPath(text.rstrip("/")).parts
    if "checkpoints" in parts:
        parts = parts[len(parts) - parts[::-1].index("checkpoints") :]
    if len(parts) != 1:
        return "/".join(parts[-2:]) if "checkpoints" in text else text
    name = parts[0]
    organisation = next((whose for start, whose in ORGANISATIONS if name.lower().startswith(start)), "")
    return NAMES.get(name.lower(), f"{organisation}/{name}" if organisation else name)


def _sizes(config: Settings, reading: Reading) -> None:
    mlp = config("mlp_class_name")
    block = "llama" if mlp is not None and mlp.text == "LLaMAMLP" else "gpt_neox"
    first = config.leaves["n_layer"]
    reading.state("model.transformer.block", block, (mlp or first).place)
    apply((Row(row.key, f"model.transformer.{row.path}", row.convert) for row in SIZES), config, reading)
    if config("padded_vocab_size") is None:
        apply((Row("vocab_size", "model.transformer.vocab_size", convert.positive),), config, reading)
