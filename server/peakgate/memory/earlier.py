"""What libraries did before a version, where a job does not say: rows beside those of `defaults.py`, each with its source.

A row holds while the library's stated version is below `before` (`now`: at every later one); of several the first one does. A job that
states no version gets the row of `defaults.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from peakgate.memory.defaults import Default
from peakgate.memory.job import Framework
from peakgate.memory.versions import version_of

Versions = Mapping[str, tuple[int, ...]]
"""Stated versions by library: torch, and the framework by its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What jobs of `framework` (`*`: of any) did while `library` was older than `before`."""

    library: str
    before: tuple[int, ...]
    default: Default

    @property
    def named(self) -> Default:
        """The default with its versions in the name, as a catalogue lists it."""
        bound = f" < {'.'.join(map(str, self.before))}" if self.before else ", later versions"
        return replace(self.default, framework=f"{self.default.framework} ({self.library}{bound})")


_ROWS = """
torch | 2.0 | * | optimizer.set_to_none | false | torch before 2.0: zero_grad keeps zeros (github.com/pytorch/pytorch/pull/92731)
huggingface | 4.32 | huggingface | optimizer.implementation | for-loop | transformers optimization.py: its own AdamW (pull 25109)
torch | 2.0 | * | optimizer.implementation | for-loop | torch/optim/adam.py before 2.0: foreach only when asked for
torch | 2.8 | huggingface | optimizer.implementation | foreach | transformers training_args.py: adamw_torch before torch 2.8
huggingface | 4.36 | huggingface | attention.implementation | eager | transformers modeling_utils.py before 4.36: no sdpa attention
torch | 2.0 | * | attention.implementation | eager | torch 2.0 is the first with scaled_dot_product_attention
huggingface | 5.0 | huggingface | checkpointing.reentrant | true | transformers modeling_utils.py before 5: use_reentrant=True
torch | 2.0 | * | checkpointing.reentrant | true | torch/utils/checkpoint.py before 2.0: use_reentrant=True
torchtune | 0.3 | torchtune | loss.implementation | full | torchtune recipes/configs before 0.3: torch.nn.CrossEntropyLoss
torchtune | now | torchtune | loss.implementation | chunked | torchtune recipes/configs from 4fba6cd44 on: CEWithChunkedOutputLoss
litgpt | 0.5.5 | litgpt | framework.bitsandbytes | 0.42.0 | litgpt pyproject.toml before d2ed13c3: bitsandbytes==0.42.0
litgpt | now | litgpt | framework.bitsandbytes | 0.44 | litgpt pyproject.toml from d2ed13c3 on: bitsandbytes>=0.44.0
"""


def _parse(text: str) -> tuple[Earlier, ...]:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(
        Earlier(library=library, before=version_of(before), default=Default(framework=f, field=p, value=v, source=s))
        for library, before, f, p, v, s in rows
    )


EARLIER = _parse(_ROWS)

_BY_FIELD = {field: tuple(row for row in EARLIER if row.default.field == field) for field in {row.default.field for row in EARLIER}}


def versions_of(framework: str, stated: Framework) -> dict[str, tuple[int, ...]]:
    """The versions that a job states, by library."""
    own = version_of(stated.version)
    found = {framework: own, "torch": version_of(stated.torch) or (own if framework == "torch" else ())}
    return {library: version for library, version in found.items() if version}


def earlier_of(framework: str, field: str, versions: Versions) -> Default | None:
    """The default of a field at the stated versions, where it is not today's."""
    for row in _BY_FIELD.get(field, ()) if versions else ():
        if row.default.framework in ("*", framework) and _holds(row, versions):
            return row.default
    return None


def _holds(row: Earlier, versions: Versions) -> bool:
    version = versions.get(row.library, ())
    return bool(version) and (not row.before or version < row.before)


KERNELS: tuple[tuple[str, tuple[int, ...], Mapping[str, str]], ...] = (
    ("torch", (1, 11), {"softmax": "softmax_of_input", "log_softmax": "log_softmax_of_input"}),
)
"""Kernels that keep more before a version: pytorch tools/autograd/derivatives.yaml named softmax's input in its gradient
(github.com/pytorch/pytorch/issues/64000; pull 65242 took it out)."""


def earlier_kernels(versions: Versions) -> tuple[tuple[str, str], ...]:
    """(kernel, the one that stood in its place) at the stated versions."""
    return tuple(
        pair for library, before, renames in KERNELS if library in versions and versions[library] < before for pair in renames.items()
    )
