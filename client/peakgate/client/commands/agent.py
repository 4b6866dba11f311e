"""`peakgate agent`: watches the GPUs of this node, and the verbs of whoever runs such nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from peakgate.client.agent_errors import agent_part

if TYPE_CHECKING:  # a verb that prints no JSON does without
    from peakgate.v1.plain import Plain


class Transport(StrEnum):
    """How peaks are sent."""

    stream = "stream"
    unary = "unary"


class GpuNumbers(StrEnum):
    """Which number of a GPU a file is named by."""

    AUTO = "auto"
    INDEX = "index"
    MINOR = "minor"


agent = typer.Typer(invoke_without_command=True, no_args_is_help=False)
spool_verbs = typer.Typer(no_args_is_help=True, help="What waits to be acknowledged by the service.")
agent.add_typer(spool_verbs, name="spool")

AgentServer = Annotated[str, typer.Option(metavar="HOST:PORT", envvar="PEAKGATE_SERVER", help="The service that takes the peaks.")]
Simulate = Annotated[
    str | None, typer.Option(metavar="SCENARIO", help="A simulated NVML: a scenario's name or path, then ,VARIABLE=VALUE.")
]
NodeName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of this node. Default: the host's.")]
Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")]
Spool = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where peaks wait until they are acknowledged. Default: the user's state folder.")
]
Once = Annotated[bool, typer.Option("--once", help="One sample, sent, and out.")]
Duration = Annotated[
    float | None, typer.Option("--duration", metavar="SECONDS", help="Stop after so long. Default: run until told to stop.")
]
TransportForm = Annotated[Transport, typer.Option(help="One stream, or a call a batch.")]
MetricsPort = Annotated[
    int | None, typer.Option(metavar="PORT", help="Serve the agent's own metrics there (9552 by custom). Default: not at all.")
]
Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", help="Time between two batches; start and end of a job go at once.")
]
Control = Annotated[
    Path | None,
    typer.Option(metavar="SOCKET", help="Where pause and resume reach the agent. Default: in /run/peakgate or the state folder."),
]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Write every sample there too, to be replayed.")]
EnableAccounting = Annotated[
    bool, typer.Option("--enable-accounting", help="Switch the driver's accounting on, which keeps exact peaks; needs root.")
]
DcgmJobs = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Jobs of GPUs as dcgm-exporter reads them (--hpc-job-mapping-dir).")]
NumbersOfGpus = Annotated[
    GpuNumbers, typer.Option(help="What such files are named by: place in nvidia-smi, number in /dev/nvidiaN, or whichever is the same.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Wait at most so long.")]

HelperSocket = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Socket for trainings that report themselves. Default: /run/peakgate/agent.sock; none in a simulation."
    ),
]


@agent.callback()
def run(
    context: typer.Context,
    *,
    server: AgentServer = "127.0.0.1:50551",
    simulate: Simulate = None,
    node: NodeName = None,
    cluster: Cluster = "default",
    spool: Spool = None,
    once: Once = False,
    duration: Duration = None,
    transport: TransportForm = Transport.unary,
    metrics_port: MetricsPort = None,
    interval: Interval = 30.0,
    helper_socket: HelperSocket = None,
    control: Control = None,
    record: Record = None,
    enable_accounting: EnableAccounting = False,
    dcgm_jobs: DcgmJobs = None,
    gpu_numbers: NumbersOfGpus = GpuNumbers.AUTO,
) -> None:
    """Reports the highest GPU memory of each job on this node; or, with a verb, helps to run such a node."""
    if context.invoked_subcommand:
        return
    with agent_part():
        from peakgate.agent.main import run_agent
    options: dict[str, object] = {
        "server": server,
        "simulate": simulate,
        "node": node,
        "cluster": cluster,
        "spool": spool,
        "once": once,
        "duration_seconds": duration,
        "transport": transport.value,
        "metrics_port": metrics_port,
        "interval_seconds": interval,
        "helper_socket": helper_socket,
        "control": control,
        "record": record,
        "enable_accounting": enable_accounting,
        "dcgm_jobs": dcgm_jobs,
        "gpu_numbers": gpu_numbers.value,
    }
    if not once and duration is None:
        _become_the_agent(options)
    raise typer.Exit(run_agent(**options))  # type: ignore[arg-type]  # the options above


def _become_the_agent(options: dict[str, object]) -> NoReturn:
    """A process that lives for months does without this command's parser and tables, a sixth of its memory."""
    import json
    import os
    import sys
    from contextlib import suppress

    written = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    for stream in (0, 1, 2):
        with suppress(OSError):  # a closed one stays closed
            os.set_inheritable(stream, True)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "peakgate.agent", json.dumps(written)])  # noqa: S606 (our own arguments)


@agent.command("once")
def look_once(*, simulate: Simulate = None, cluster: Cluster = "default", as_json: AsJson = False) -> None:
    """Shows what is on this node's GPUs now and whose it is; sends and keeps nothing."""
    with agent_part():
        from peakgate.agent.plain import plain
        from peakgate.agent.tables import GLANCE_HEAD, glance_rows
        from peakgate.agent.verbs import look

        seen = look(simulate=simulate, cluster=cluster)
    if as_json:
        _print_json(plain(seen))
    else:
        _print(GLANCE_HEAD, glance_rows(seen), empty=seen.problem or "no GPU answers")


@agent.command("doctor")
def check_up(
    *,
    server: AgentServer = "127.0.0.1:50551",
    simulate: Simulate = None,
    spool: Spool = None,
    control: Control = None,
    as_json: AsJson = False,
) -> None:
    """Checks what the agent needs on this node, each with its remedy. Exit status 1 when something is wrong."""
    from peakgate.client.doctor.check import Check, State
    from peakgate.client.doctor.node import node_checks
    from peakgate.client.doctor.packages import package_checks
    from peakgate.client.options import Output
    from peakgate.client.output import human_console
    from peakgate.client.render.checks import print_checks

    checks = [each for each in package_checks() if each.name != "pynvml"]  # the agent asks itself, as `binding`
    with agent_part():
        from peakgate.agent.verbs import check

        states = {"passed": State.ok, "noted": State.note, "failed": State.bad}
        findings = check(simulate=simulate, server=server, spool=spool, control=control)
        checks += [Check(name=each.name, state=states[each.outcome], found=each.seen, remedy=each.fix) for each in findings]
    checks += [each for each in node_checks() if each.name.endswith(".sock")]
    if as_json:
        _print_json([{"name": each.name, "state": each.state.value, "found": each.found, "remedy": each.remedy} for each in checks])
    else:
        print_checks(human_console(Output.table), checks)
    raise typer.Exit(1 if any(each.state is State.bad for each in checks) else 0)


@agent.command("pause")
def pause(
    *,
    seconds: Annotated[
        float, typer.Option("--for", metavar="SECONDS", min=1.0, help="It opens NVML again by itself after so long.")
    ] = 600.0,
    timeout: Timeout = 30.0,
    control: Control = None,
) -> None:
    """Makes the running agent close NVML and waits until it has: before a GPU reset or a driver update. Nothing that it saw is lost."""
    with agent_part():
        from peakgate.agent.verbs import pause as pause_agent

        state = pause_agent(control=control, seconds=seconds, timeout_seconds=timeout)
    typer.echo(state)
    raise typer.Exit(0 if state == "paused" else 4)


@agent.command("resume")
def resume(*, timeout: Timeout = 30.0, control: Control = None) -> None:
    """Ends a pause and waits until the agent watches again."""
    with agent_part():
        from peakgate.agent.verbs import resume as resume_agent

        state = resume_agent(control=control, timeout_seconds=timeout)
    typer.echo(state)
    raise typer.Exit(0 if state == "watching" else 4)


@agent.command("replay")
def replay(recording: Annotated[Path, typer.Argument(metavar="FILE", help="What --record wrote.")], *, as_json: AsJson = False) -> None:
    """Puts recorded samples through the same code: the peaks and job ends that the agent would have reported."""
    with agent_part():
        from peakgate.agent.replay import replay as replayed
        from peakgate.agent.tables import report

        found, tables = report(*replayed(recording))
    _show(found, tables, as_json=as_json)


@spool_verbs.command("ls")
def list_spool(*, spool: Spool = None, as_json: AsJson = False) -> None:
    """Lists the peaks and job ends that wait; a running agent is not disturbed."""
    from contextlib import closing

    with agent_part():
        from peakgate.agent.spool_view import SpoolView
        from peakgate.agent.start import default_spool
        from peakgate.agent.tables import report

        with closing(SpoolView(spool or default_spool())) as view:
            found, tables = report(view.rows(), view.events())
    _show(found, tables, as_json=as_json)


@spool_verbs.command("drain")
def drain_spool(*, server: AgentServer = "127.0.0.1:50551", spool: Spool = None, timeout: Timeout = 30.0) -> None:
    """Delivers what waits. Exit status 4 when something still does."""
    with agent_part():
        from peakgate.agent.verbs import drain_spool as drain

        waiting = drain(spool=spool, server=server, timeout_seconds=timeout)
    typer.echo(f"{waiting} wait" if waiting else "empty")
    raise typer.Exit(4 if waiting else 0)


def _show(found: Plain, tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]], *, as_json: bool) -> None:
    """Peaks and job ends of the agent."""
    if as_json:
        _print_json(found)
        return
    for head, rows in tables:
        _print(head, rows, empty="none")


def _print(head: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    from peakgate.client.options import Output
    from peakgate.client.output import human_console
    from peakgate.client.render.agent import print_table

    print_table(human_console(Output.table), head, rows, empty=empty)


def _print_json(value: Plain) -> None:
    from peakgate.client.options import Output
    from peakgate.client.output import write_json

    write_json(value, Output.json)
