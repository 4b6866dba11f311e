"""LLM Foundry's models: MPT by its sizes, Hugging Face's by their names.

Sources: llm-foundry models/mpt/configuration_mpt.py (MPTConfig's defaults, tie_word_embeddings, learned_pos_emb), models/layers/ffn.py,
models/hf/hf_causal_lm.py (config_overrides, peft_config, use_flash_attention_2) at 8c8dd48f7.
"""

from __future__ import annotations

from peakgate.readers import convert
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

MPT = "mpt_causal_lm"
BY_NAME = ("hf_causal_lm", "hf_prefix_lm", "hf_t5", "hf_seq2seq_lm")

DEFAULTS = {"layers": 24, "hidden_size": 2048, "heads": 16, "vocab_size": 50368}
"""MPTConfig's own."""

SIZES = (
    Row("n_layers", "model.transformer.layers", convert.positive),
    Row("d_model", "model.transformer.hidden_size", convert.positive),
    Row("n_heads", "model.transformer.heads", convert.positive),
    Row("vocab_size", "model.transformer.vocab_size", convert.positive),
    Row("tie_word_embeddings", "model.transformer.tied_embeddings", convert.flag),
    Row("attn_config.kv_n_heads", "model.transformer.kv_heads", convert.positive),
    Row("attn_config.attn_pdrop", "dropout.attention", convert.number),
    Row("resid_pdrop", "dropout.hidden", convert.number),
    Row("attn_config.attn_impl", "attention.implementation", convert.one_of({"flash": "flash", "triton": "flash", "torch": "eager"})),
)
ADAPTERS = (
    Row("r", "lora.rank", convert.positive),
    Row("lora_dropout", "lora.dropout", convert.number),
    Row("use_dora", "lora.method", convert.always("dora")),
)
ATTENTION = (
    Row(
        "attn_implementation", "attention.implementation", convert.one_of({"flash_attention_2": "flash", "sdpa": "sdpa", "eager": "eager"})
    ),
    Row("use_flash_attention_2", "attention.implementation", convert.always("flash")),
)


def model_of(settings: Settings, reading: Reading) -> None:
    """States the model, its attention and its adapters."""
    name, model = settings("model.name"), settings.under("model")
    if name is None:
        return
    if name.text == MPT:
        _mpt(name, model, reading)
    elif name.text in BY_NAME:
        _by_name(name, model, reading)
    else:
        reading.cannot_say(f"the model {name.text[:60]}", name.place)


def _mpt(name: Stated, model: Settings, reading: Reading) -> None:
    reading.state("model.transformer.block", "mpt", name.place)
    apply(SIZES, model, reading)
    for field, size in DEFAULTS.items():
        reading.default(f"model.transformer.{field}", size, "llm-foundry's MPTConfig")
    reading.default("model.transformer.tied_embeddings", True, "llm-foundry's MPTConfig")
    _width(model, reading)
    _positions(model, reading)
    one_head = model("attn_config.attn_type")
    if one_head is not None and one_head.text == "multiquery_attention":
        reading.state("model.transformer.kv_heads", 1, one_head.place)
    kind = model("ffn_config.ffn_type")
    if kind is not None and kind.text != "mptmlp":
        reading.cannot_say(f"feed-forward parts of the kind {kind.text[:30]}", kind.place)


def _width(model: Settings, reading: Reading) -> None:
    hidden, ratio = reading.get("model.transformer.hidden_size"), model("expansion_ratio")
    stated = model("ffn_config.ffn_hidden_size")
    if stated is not None:
        apply((Row("ffn_config.ffn_hidden_size", "model.transformer.ffn_hidden_size", convert.positive),), model, reading)
        return
    if not isinstance(hidden, int):
        return
    try:
        times = convert.number(ratio) if ratio is not None else 4.0
    except ValueError as error:
        reading.warnings.append(f"model.expansion_ratio: {error}")
        return
    if 0 < times < 1000:
        place = ratio or model.first("d_model")
        if place is not None:
            reading.state("model.transformer.ffn_hidden_size", int(hidden * times), place.place)
        else:
            reading.default("model.transformer.ffn_hidden_size", int(hidden * times), "llm-foundry's MPTConfig")


def _positions(model: Settings, reading: Reading) -> None:
    """A table of positions unless ALiBi or rotations take its place."""
    for key in ("attn_config.rope", "attn_config.alibi", "learned_pos_emb"):
        stated = model(key)
        if stated is None:
            continue
        try:
            on = convert.flag(stated)
        except ValueError:
            continue
        if key == "attn_config.rope" and on:
            reading.cannot_say("MPT with rotated positions", stated.place)
        if (key == "learned_pos_emb") != on:
            return
    apply((Row("max_seq_len", "model.transformer.max_positions", convert.positive),), model, reading)
    reading.default("model.transformer.max_positions", 2048, "llm-foundry's MPTConfig")


def _by_name(name: Stated, model: Settings, reading: Reading) -> None:
    stated = model("pretrained_model_name_or_path")
    if stated is None:
        reading.cannot_say(f"{name.text} without pretrained_model_name_or_path", name.place)
        return
    reading.state("model.preset", stated.text, stated.place)
    overrides = model.under("config_overrides")
    apply(ATTENTION, model.merged(overrides), reading)
    for key in ("num_hidden_layers", "hidden_size", "n_layers", "d_model", "intermediate_size", "vocab_size", "num_attention_heads"):
        if (size := overrides(key)) is not None:
            reading.cannot_say(f"{key} is not the model's own", size.place)
    _adapters(model.under("peft_config"), reading)


def _adapters(peft: Settings, reading: Reading) -> None:
    kind = peft("peft_type")
    if kind is None:
        return
    if kind.text.upper() != "LORA":
        reading.cannot_say(f"adapters of the kind {kind.text[:30]}", kind.place)
        return
    apply(ADAPTERS, peft, reading)
    reading.default("lora.rank", 8, "peft: r = 8")
    targets = peft("target_modules")
    if targets is not None and isinstance(targets.value, list):
        reading.state("lora.targets", [str(each) for each in targets.value], targets.place)
    elif targets is not None:
        reading.state("lora.targets", [targets.text], targets.place)
