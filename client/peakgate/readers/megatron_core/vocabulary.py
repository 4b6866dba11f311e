"""Rows of the embedding that Megatron builds: those of a flag, or the tokens of the tokenizer that a launch names.

Sources: M megatron/core/tokenizers/utils/build_tokenizer.py (vocab_size_with_padding; which library reads which type) and
text/libraries/megatron_hf_tokenizer.py (MEGATRON_CONFIG_MAP: the published vocabulary of a type); pretrain_gpt.py, and pretrain_bert.py and
pretrain_t5.py of core_v0.12 (args_defaults: the type without a word).
"""

from __future__ import annotations

import math
import re

from peakgate.readers.megatron_core.options import Options

PATH = "model.transformer.vocab_size"
PLAIN_MULTIPLE = 128
"""M --make-vocab-size-divisible-by."""

TYPES = {
    "gpt2bpetokenizer": (50257, "gpt2-vocab.json"),
    "bertwordpiecelowercase": (30522, "bert-large-uncased-vocab.txt"),
    "bertwordpiececase": (28996, "bert-large-cased-vocab.txt"),
    "llama2tokenizer": (32000, "Llama 2's tokenizer.model"),
    "tiktokenizer": (1 << 17, "tiktoken_tokenizer.py: DEFAULT_TIKTOKEN_MAX_VOCAB"),
}
"""Type of a tokenizer -> its tokens, and which vocabulary has them."""

OF_KIND = {"gpt": "gpt2bpetokenizer", "bert": "bertwordpiecelowercase", "t5": "bertwordpiecelowercase"}
"""The type that a program takes beside --vocab-file when none is named."""

FROM_FILES = ("huggingfacetokenizer", "sfttokenizer")
"""Types whose tokens are those of the folder or the id that --tokenizer-model names."""

MODELS = (
    (r"(meta-)?llama-?3(\.\d)?(-[-.\w]+)?", 128256),
    (r"llama-?2(-[-.\w]+)?", 32000),
    (r"mi[sx]tral-(7b|8x7b)[-\w]*-v0\.[12]", 32000),
    (r"mistral-7b[-\w]*-v0\.3", 32768),
    (r"qwen2\.5-\d[-.\w]*", 151665),
    (r"qwen2-\d[-.\w]*", 151646),
    (r"qwen3-\d[-.\w]*", 151669),
    (r"gpt2(-\w+)?", 50257),
)
"""Last part of an id -> length of its tokenizer: tokens of the published tokenizer.json with those of tokenizer_config.json's
added_tokens_decoder (Qwen's embeddings have more rows than that, which Megatron's do not)."""


def read_vocabulary(options: Options, kind: str) -> None:
    """States the rows. The server pads to 128 × tensor degree, as Megatron does by default; another multiple is padded to here."""
    if (padded := options.whole("padded_vocab_size")) is not None:
        options.state(PATH, padded, "padded_vocab_size")
    elif (size := options.whole("vocab_size")) is not None:
        options.state(PATH, _padded(size, options), "vocab_size")
    elif (known := _of_tokenizer(options, kind)) is not None:
        options.reading.default(PATH, _padded(known[0], options), known[1])


def _padded(size: int, options: Options) -> int:
    size += options.whole("vocab_extra_ids") or 0
    multiple = options.size("make_vocab_size_divisible_by", PLAIN_MULTIPLE)
    if multiple == PLAIN_MULTIPLE:
        return size
    step = multiple * options.size("tensor_model_parallel_size", 1)
    return math.ceil(size / step) * step


def _of_tokenizer(options: Options, kind: str) -> tuple[int, str] | None:
    """Tokens of a well-known tokenizer, and whose they are; None of one that only its files can tell."""
    unnamed = OF_KIND.get(kind, "") if options("vocab_file") is not None else ""
    name = options.word("tokenizer_type", unnamed)
    if name in FROM_FILES and (model := options("tokenizer_model")) is not None:
        last = model.text[:200].strip().rstrip("/").rpartition("/")[2].lower()
        tokens = next((size for pattern, size in MODELS if re.fullmatch(pattern, last)), None)
        return (tokens, f"the tokenizer of {last} ({model.place})") if tokens else None
    if name not in TYPES:
        return None
    tokens, whose = TYPES[name]
    return tokens, f"the tokenizer ({options.place('tokenizer_type', 'vocab_file')}): {whose}"
