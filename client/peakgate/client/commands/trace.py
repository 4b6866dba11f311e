"""`peakgate trace`: a profile of any PyTorch model, for `model.profile`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TracedOptimizer(StrEnum):
    """Optimizers of torch.optim by the job document's names."""

    adamw = "adamw"
    adam = "adam"
    sgd = "sgd"
    sgd_momentum = "sgd-momentum"
    adafactor = "adafactor"


class Implementation(StrEnum):
    """How the optimizer runs."""

    foreach = "foreach"
    fused = "fused"
    for_loop = "for-loop"


class Dtype(StrEnum):
    """Formats that the model may be cast to."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


Factory = Annotated[str, typer.Argument(metavar="MODULE:FACTORY", help="Returns (model, batch) or (model, batch, loss).")]
Out = Annotated[Path | None, typer.Option("--out", help="The file to write. Default: standard output.")]
Kind = Annotated[TracedOptimizer, typer.Option("--optimizer", help="The optimizer.")]
How = Annotated[Implementation, typer.Option("--implementation", help="How it runs.")]
Cast = Annotated[Dtype | None, typer.Option("--dtype", help="Casts the model and its inputs. Default: as the factory made them.")]
Steps = Annotated[int, typer.Option("--gradient-accumulation-steps", min=1, help="Micro-batches an optimizer step.")]


def trace(
    *,
    factory: Factory,
    out: Out = None,
    optimizer: Kind = TracedOptimizer.adamw,
    implementation: How = Implementation.foreach,
    dtype: Cast = None,
    gradient_accumulation_steps: Steps = 1,
) -> None:
    """Traces a training step of a PyTorch model without a GPU and writes the profile that a job's `model.profile` names.

    FACTORY is called on the meta device. It returns a model and an example batch, and, when the model does not return its loss, a function
    loss(model, batch). The profile holds sizes only: no weights, no data, no code.
    """
    from peakgate.client.extras import extra
    from peakgate.client.output import write_line

    with extra("trace"):
        from peakgate.client.tracer.run import profile_of
    with _progress() as seen:
        text = profile_of(
            factory,
            dtype=dtype or "",
            optimizer=optimizer,
            implementation=implementation,
            accumulation=gradient_accumulation_steps,
            seen=seen,
        )
    if out is None:
        write_line(text)
    else:
        out.write_text(text + "\n")


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere: the second step has as many operations as the first."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    counts = [0, 0]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("first step", total=None)

        def seen(step: int) -> None:
            counts[step] += 1
            if counts[step] % 200 == 0:
                total, name = (counts[0], "second step") if step else (None, "first step")
                bar.update(task, description=name, total=total, completed=counts[step])

        yield seen
