"""Attention under context parallelism: each rank has a share of the tokens, and keys and values of all others come to it.

Sources, step by step in the order of the code:

- torch/distributed/tensor/experimental/_context_parallel/_attention.py: keys and values are made contiguous, joined, and gathered at
  once (`_AllGatherRotater`, the default) or passed on from rank to rank (`_AllToAllRotater`); outputs are merged in fp32 (`_SDPAMerger`);
  gradients of keys and values go round in fp32. The last rank merges whole outputs, the others halves: the last is counted.
- Transformer Engine 2.11, pytorch/attention/dot_product_attention/context_parallel.py: `AttnFuncWithCPAndKVP2P` names a buffer and an
  output for every step to its end, and keeps the last buffer; `AttnFuncWithCPAndKVAllGather` gathers, reorders, and keeps the outputs
  of both halves; `AttnFuncWithCPAndQKVOA2A` exchanges heads for tokens.
- deepspeed/sequence/layer.py, `single_all_to_all`: heads are exchanged for tokens, from a permuted copy and into one.
"""

from __future__ import annotations

from peakgate.memory import kernels
from peakgate.memory.plan import Degrees, Plan

GATHERED, PASSED_ON = ("ch={ring}", "-ch"), ("ch={kv} cj={kv}", "-ch -cj")
"""What the keys and values of other ranks arrive in, and that it goes."""

_MERGED = (
    "cc={k} cd={v} ce={kv} {made} co={q} cs={q4} -ce -cc -cd cp={q} -co ct={q4} cu={q4} cw={q4} -cu cz={q4} -cw -cs -ct "
    "{y}={q} -cz -cp {gone}"
)
_ROUND = (
    "ca={q4} cb={k4} cv={v4} cc={k} cd={v} ce={kv} {made} cm={q} cf={q4} -cf cn={k} co={v} cr={kv4} cs={kv4} -cc -cd -ce -cb -cv "
    "ct={q} ci={q4} -ci cu={k} cw={v} -cm -cn -co -cr cx={k4} cy={v4} cz={kv4} -cs cl={kv4} -cx -cy {gone} "
    "{gq}={q} -ca {gk}={k} {gv}={v} -cz -cl -ct -cu -cw"
)
_OPERANDS = {
    "q": "q",
    "q4": "q:4",
    "k": "k",
    "k4": "k:4",
    "v": "v",
    "v4": "v:4",
    "kv": "k*two",
    "kv4": "k*two:4",
    "ring": "k*ring",
    "y": "y",
    "gq": "gq",
    "gk": "gk",
    "gv": "gv",
}


def merged(sizes: dict[str, str], buffers: tuple[str, str]) -> str:
    """Forward steps of torch's ring; `sizes` says how a row writes each tensor's size."""
    return _filled(_MERGED, sizes, buffers)


def gone_round(sizes: dict[str, str], buffers: tuple[str, str]) -> str:
    """Its gradient's steps."""
    return _filled(_ROUND, sizes, buffers)


def _filled(steps: str, sizes: dict[str, str], buffers: tuple[str, str]) -> str:
    made, gone = (text.format(**sizes) for text in buffers)
    return steps.format(**sizes, made=made, gone=gone)


def _ring(name: str, buffers: tuple[str, str]) -> str:
    forward, gradient = merged(_OPERANDS, buffers), gone_round(_OPERANDS, buffers)
    return f"{name}(q,k,v) | {forward} l!=lse:4 r!=rng | q,k,v(q,k,v,y,l,r): {gradient}"


_ULYSSES = (
    "a=q b=q cq!=q -a -b a=k b=k ck!=k -a -b a=v b=v cv!=v -a -b co!=q l!=lse:4 {state} a=q b=q y=q -a -b",
    "a=q b=q d=q -a -b m=q t=q:4 -t n=k o=v -d a=q b=q gq=q -a -b -m a=k b=k gk=k -a -b -n a=v b=v gv=v -a -b -o",
)

_TWO_BUFFERS = "a=k*four b=v*four gq=q m=q n=k o=v"  # each of keys, values and their gradients
_GATHER = "a=k*ranks b=v*ranks c=k*ranks -a d=v*ranks -b"
_HALVES = "m=q n=k*ranks p=v*ranks -m -n -p -c -d"

KERNELS = kernels.parse(f"""
{_ring("flash_all_gather", GATHERED)}
{_ring("flash_ring", PASSED_ON)}
flash_ulysses(q,k,v) | {_ULYSSES[0].format(state="r!=rng")} | q,k,v(cq,ck,cv,co,l,r): {_ULYSSES[1]}
te_ring(q,k,v) | a=k*others b=v*others ck!=k cv!=v o=q*ranks y=q -o -a -b l!=lse:4 | q,k,v(q,ck,cv,y,l): {_TWO_BUFFERS} gk=k gv=v
te_all_gather(q,k,v) | {_GATHER} o!=q y=q -c -d l!=lse:4 | q,k,v(q,k,v,o,l): gq=q e=k*ranks f=v*ranks {_GATHER} {_HALVES} gk=k gv=v
te_ulysses(q,k,v) | {_ULYSSES[0].format(state="")} | q,k,v(cq,ck,cv,co,l): {_ULYSSES[1]}
""")

WAYS = {"all-gather": "all_gather", "ring": "ring", "ulysses": "ulysses"}
"""`parallelism.context_type` in the names of kernels."""


def context_dims(degrees: Degrees, tokens: int) -> dict[str, int]:
    """How many keys or values a buffer holds: those of one rank, of all, of all but one; and all ranks' tokens."""
    ranks = degrees.context
    return {"two": 2, "ranks": ranks, "ring": 2 * ranks, "others": ranks - 1, "T_ring": ranks * tokens}


def crosses_ranks(kernel: str) -> bool:
    """Whether a kernel's row has the buffers of context parallelism."""
    return kernel in KERNELS or (kernel.startswith("compiled_") and kernel.endswith(tuple(f"_{way}" for way in WAYS.values())))


def context_suffix(plan: Plan) -> str:
    """What distinguishes the row of a compiled layer."""
    return f"_{WAYS[plan.degrees.context_type]}" if plan.degrees.context > 1 else ""


def context_roles(plan: Plan) -> dict[str, str]:
    """The kernels that stand for those of one rank."""
    if plan.degrees.context == 1 or plan.attention == "eager" or plan.profile == "textbook":
        return {}
    way = WAYS[plan.degrees.context_type]
    return {"flash": f"flash_{way}", "flash_cuda": f"flash_{way}", "attention_te": f"te_{way}"}
