"""One layer of torchtitan's Llama or Qwen3 under torch.compile, forward and gradient: what inductor must allocate.

Llama's complex numbers fall back to eager kernels; Qwen3 turns positions in halves, which one kernel does with the norms of its heads. Of
the per-operation list the output of w2 is not kept, because the backward graph does not read it (torch/_functorch/partitioners.py). Under
context parallelism the attention is torch's ring (`context_parallel.py`), an eager call.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from peakgate.memory import context_parallel, kernels

_QKV = "n=x q{keep}=T*q:2 k=T*kv:2 v{keep}=T*kv:2 -n"
_ROTATED = "fq=T*q:4 {free} oq=T*q:4 -fq rq=T*q:2 -oq fk=T*kv:4 -k ok=T*kv:4 -fk kr=T*q:2 -ok vr=T*q:2"
_TURNED = "rq=T*q:2 {free} kr=T*q:2 -k vr=T*q:2"
_MLP_GRADIENT = "p=T*f:2 gp=T*f:2 -p gu=T*f:2 gg=T*f:2 -gp -u {free} ga=x gn=x -gu -gg -m -ga gh=x -gn -o"
_REPEATED = "rq=T*q:2 kr=T*q:2 vr=T*q:2"


@dataclass(frozen=True, slots=True)
class Core:
    """Steps of an attention: its output `a`, kept or not, and its gradient."""

    forward: str
    kept: str
    gradient: str


def _ring(buffers: tuple[str, str]) -> Core:
    """Keys and values are repeated for all heads before they go round."""
    sizes = {
        **dict.fromkeys(("q", "k", "v"), "T*q:2"),
        **dict.fromkeys(("q4", "k4", "v4", "kv"), "T*q:4"),
        "kv4": "T*q:8",
        "ring": "T_ring*q:4",
        "gq": "dq",
        "gk": "dk",
        "gv": "dv",
    }
    forward, kept = (context_parallel.merged(sizes | {"y": name}, buffers) for name in ("a", "a!"))
    return Core(forward, kept, f"{context_parallel.gone_round(sizes, buffers)} -rq -kr -vr")


ONE_RANK = Core("a=T*q:2", "a!=T*q:2", "dq=T*q:2 dk=T*q:2 dv=T*q:2 d=lse:4 t=T*q:4 -t -d -rq -kr -vr")


def _selective(core: Core, positions: str, undone: str) -> str:
    forward = f"{_QKV.format(keep='!')} {positions.format(free='')} {core.kept} l!=lse:4 -rq -kr -vr o=x m=x g!=T*f:2 u=T*f:2 -m y=x -u -o"
    again = f"o=x m=x u=T*f:2 {_MLP_GRADIENT.format(free='')} {_REPEATED}"
    return f"{forward} | x(x,q,v,a,l,g): {again} {core.gradient} {undone} gx=x -dq -dk -dv -gh"


def _full(core: Core, positions: str, _: str) -> str:
    attention = f"{_QKV.format(keep='')} {positions.format(free='-q')} -v {core.forward} l=lse:4"
    again = f"{attention} o=x m=x g=T*f:2 u=T*f:2 {_MLP_GRADIENT.format(free='-g')}"
    return (
        f"{attention} -rq -kr -vr o=x -a -l m=x g=T*f:2 u=T*f:2 -m -g y=x -u -o | x(x): {again} {core.gradient} -a -l gx=x -dq -dk -dv -gh"
    )


_CORES = {"": ONE_RANK, "_all_gather": _ring(context_parallel.GATHERED), "_ring": _ring(context_parallel.PASSED_ON)}

_POSITIONS = {"llama": (_ROTATED, "fq=T*q:4 -fq"), "qwen3": (_TURNED, "")}
_MODES = {"selective": _selective, "full": _full}

KERNELS = kernels.parse(
    "\n".join(
        f"compiled_{block}_{mode}{suffix}(x) | {row(core, *_POSITIONS[block])}"
        for block, (suffix, core), (mode, row) in product(_POSITIONS, _CORES.items(), _MODES.items())
    )
)

LAYERS = {f"{block}/{mode}": f"compiled_{block}_{mode}" for block, mode in product(_POSITIONS, _MODES)}
