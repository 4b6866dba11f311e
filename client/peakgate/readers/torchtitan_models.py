"""torchtitan's flavors: the sizes behind a model's name and flavor.

Sources: torchtitan models/{llama3,llama4,deepseek_v3,qwen3,gpt_oss}/__init__.py at v0.2.2 (the tables of model arguments; the feed-forward
width as models/llama3/model/model.py, FeedForward, makes it of ffn_dim_multiplier and multiple_of) and at b5bcd76c6 (llama3 1B, 3B);
the table of llama2 before commit 4d88a8a44.
"""

from __future__ import annotations

import re

_ROWS = """
llama2      debugmodel     llama        6   256  16  16   16   768   2000 no
llama2      7B             llama       32  4096  32  32  128 11008  32000 no
llama2      13B            llama       40  5120  40  40  128 13824  32000 no
llama2      70B            llama       80  8192  64   8  128 28672  32000 no
llama3      debugmodel     llama        6   256  16  16   16   768   2048 no
llama3      1B             llama       16  2048  32   8   64  8192 128256 yes
llama3      3B             llama       28  3072  24   8  128  8192 128256 yes
llama3      8B             llama       32  4096  32   8  128 14336 128256 no
llama3      70B            llama       80  8192  64   8  128 28672 128256 no
llama3      405B           llama      126 16384 128   8  128 53248 128256 no
llama4      debugmodel     llama4       6   256  16  16   16   768   2048 no  experts=8 experts_per_token=1 shared_experts=1 expert_ffn_hidden_size=384
llama4      17bx16e        llama4      48  5120  40   8  128 16384 202048 no  experts=16 experts_per_token=1 shared_experts=1 expert_ffn_hidden_size=8192
llama4      17bx128e       llama4      48  5120  40   8  128 16384 202048 no  experts=128 experts_per_token=1 shared_experts=1 expert_ffn_hidden_size=8192
deepseek_v3 debugmodel     deepseek_v3  6   256  16  16    -  1024   2048 no  experts=8 experts_per_token=3 shared_experts=2 expert_ffn_hidden_size=256 dense_layers=1 mla=0,512,64,128,128
deepseek_v3 16B            deepseek_v3 27  2048  16  16    - 10944 102400 no  experts=64 experts_per_token=6 shared_experts=2 expert_ffn_hidden_size=1408 dense_layers=1 mla=0,512,64,128,128
deepseek_v3 236B           deepseek_v3 60  5120 128 128    - 12288 102400 no  experts=160 experts_per_token=6 shared_experts=2 expert_ffn_hidden_size=1536 dense_layers=1 mla=1536,512,64,128,128
deepseek_v3 671B           deepseek_v3 61  7168 128 128    - 18432 129280 no  experts=256 experts_per_token=8 shared_experts=1 expert_ffn_hidden_size=2048 dense_layers=3 mla=1536,512,64,128,128
qwen3       debugmodel     qwen3        8   256  16   8  128  3072   2048 yes
qwen3       0.6B           qwen3       28  1024  16   8  128  3072 151936 yes
qwen3       1.7B           qwen3       28  2048  16   8  128  6144 151936 yes
qwen3       4B             qwen3       36  2560  32   8  128  9728 151936 yes
qwen3       8B             qwen3       36  4096  32   8  128 12288 151936 no
qwen3       14B            qwen3       40  5120  40   8  128 17408 151936 no
qwen3       32B            qwen3       64  5120  64   8  128 25600 151936 no
qwen3       debugmodel_moe qwen3_moe    8   256  16   8  128  3072   2048 no  experts=64 experts_per_token=8 expert_ffn_hidden_size=768
qwen3       30B-A3B        qwen3_moe   48  2048  32   4  128  6144 151936 no  experts=128 experts_per_token=8 expert_ffn_hidden_size=768
qwen3       235B-A22B      qwen3_moe   94  4096  64   4  128 12288 151936 no  experts=128 experts_per_token=8 expert_ffn_hidden_size=1536
gpt_oss     debugmodel     gpt_oss      4   256  64   8   64  2880 201088 no  experts=8 experts_per_token=4 expert_ffn_hidden_size=2880 sliding_window=128
gpt_oss     20b            gpt_oss     24  2880  64   8   64  2880 201088 no  experts=32 experts_per_token=4 expert_ffn_hidden_size=2880 sliding_window=128
gpt_oss     120b           gpt_oss     36  2880  64   8   64  2880 201088 no  experts=128 experts_per_token=4 expert_ffn_hidden_size=2880 sliding_window=128
"""  # noqa: E501 - a row is a line

_COLUMNS = ("layers", "hidden_size", "heads", "kv_heads", "head_dim", "ffn_hidden_size", "vocab_size")
_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
_VARIANT = re.compile(r"_(flex(_attn|_flash)?|varlen(_attn)?|irope|non_fused_qkv|mtp)$")
"""Variants of a flavor: another attention kernel or mask, the same sizes."""


def _sizes(row: str) -> tuple[tuple[str, str], dict[str, int | bool | str]]:
    name, flavor, block, *cells = row.split()
    sizes: dict[str, int | bool | str] = {"block": block}
    sizes |= {column: int(cell) for column, cell in zip(_COLUMNS, cells, strict=False) if cell != "-"}
    sizes["tied_embeddings"] = cells[7] == "yes"
    for option in cells[8:]:
        key, _, value = option.partition("=")
        if key == "mla":
            sizes |= {f"mla.{part}": int(size) for part, size in zip(_LATENT, value.split(","), strict=True)}
        else:
            sizes[key] = int(value)
    return (name, flavor.lower()), sizes


FLAVORS = dict(map(_sizes, _ROWS.strip().splitlines()))
"""(model, flavor in lower case) -> fields of `model.transformer`."""


def sizes_of(name: str, flavor: str) -> dict[str, int | bool | str] | None:
    """The fields of `model.transformer` of a flavor; None for one that is not in the tables."""
    return FLAVORS.get((name, _VARIANT.sub("", flavor.lower())))
