"""`peakgate probe`: a profile of a real run, from the memory snapshot that it left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peakgate.client.commands.trace import Implementation, Out

Source = Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="What torch.cuda.memory._dump_snapshot wrote.")]
Which = Annotated[int | None, typer.Option("--device", min=0, help="The device, where several have a history.")]
Batch = Annotated[int, typer.Option("--micro-batch-size", min=0, help="Of the run, in examples. 0: not known.")]
Steps = Annotated[int, typer.Option("--gradient-accumulation-steps", min=0, help="Of the run. 0: not known.")]
Name = Annotated[str, typer.Option("--optimizer", help="Of the run, by a job document's name.")]
How = Annotated[Implementation | None, typer.Option("--implementation", help="How the optimizer ran.")]
Recipe = Annotated[str, typer.Option("--precision", help="Of the run, by a job document's recipe.")]
World = Annotated[int, typer.Option("--world-size", min=0, help="Ranks of the run. 0: not known.")]


def probe(
    *,
    snapshot: Source,
    out: Out = None,
    device: Which = None,
    micro_batch_size: Batch = 0,
    gradient_accumulation_steps: Steps = 0,
    optimizer: Name = "",
    implementation: How = None,
    precision: Recipe = "",
    world_size: World = 0,
) -> None:
    """Reads the memory snapshot of a real run and writes the profile that a job's `model.profile` names. Needs no GPU and no PyTorch.

    The run calls torch.cuda.memory._record_memory_history() before its steps and torch.cuda.memory._dump_snapshot(FILE) behind them; the
    profile is the step around its highest moment. A snapshot does not say how the run was started: a job that states its batch, optimizer
    or precision is UNDECIDED unless the options say the same here. The profile holds sizes only: no weights, no code, no paths.
    """
    from peakgate.client.output import write_line
    from peakgate.client.probe.run import profile_of

    facts = {
        "batch_size": micro_batch_size,
        "gradient_accumulation_steps": gradient_accumulation_steps,
        "optimizer": {"name": optimizer, "implementation": implementation or ""},
        "dtype": precision,
        "world_size": world_size,
    }
    text = profile_of(snapshot, facts, device=device)
    if out is None:
        write_line(text)
    else:
        out.write_text(text + "\n")
