"""`peakgate agent`: watches the GPUs of this node, and the verbs of whoever runs such nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from peakgate.client.agent_errors import agent_part
from peakgate.client.agent_options import (
    AgentServer,
    AsJson,
    Cluster,
    Control,
    DcgmJobs,
    Duration,
    EnableAccounting,
    GpuNumbers,
    HelperSocket,
    Interval,
    MetricsPort,
    NodeName,
    NumbersOfGpus,
    Once,
    Record,
    Simulate,
    Spool,
    Timeout,
    Transport,
    TransportForm,
)

agent = typer.Typer(invoke_without_command=True, no_args_is_help=False)
spool_verbs = typer.Typer(no_args_is_help=True, help="What waits to be acknowledged by the service.")
agent.add_typer(spool_verbs, name="spool")


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
        from peakgate.agent.told import Told
    told: Told = {
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
        _become_the_agent(told)
    raise typer.Exit(run_agent(**told))


def _become_the_agent(told: Mapping[str, object]) -> NoReturn:
    """A process that lives for months does without this command's parser and tables, a sixth of its memory (10 of 58 MB resident)."""
    import json
    import os
    import sys
    from contextlib import suppress

    written = {name: str(value) if isinstance(value, Path) else value for name, value in told.items()}
    for stream in (0, 1, 2):
        with suppress(OSError):  # a closed one stays closed
            os.set_inheritable(stream, True)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "peakgate.agent", json.dumps(written)])  # noqa: S606 (our own arguments)


@agent.command("once")
def look_once(*, simulate: Simulate = None, cluster: Cluster = "default", as_json: AsJson = False) -> None:
    """Shows what is on this node's GPUs now and whose it is; sends and keeps nothing."""
    from peakgate.client.agent_output import print_json, print_rows

    with agent_part():
        from peakgate.agent.plain import plain
        from peakgate.agent.tables import GLANCE_HEAD, glance_rows
        from peakgate.agent.verbs import look

        seen = look(simulate=simulate, cluster=cluster)
    if as_json:
        print_json(plain(seen))
    else:
        print_rows(GLANCE_HEAD, glance_rows(seen), empty=seen.problem or "no GPU answers")


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
    from peakgate.client.doctor.node import node_checks
    from peakgate.client.doctor.packages import package_checks
    from peakgate.client.doctor.selftest import checks_of
    from peakgate.client.doctor.show import show
    from peakgate.client.options import Output

    checks = [each for each in package_checks() if each.name != "pynvml"]  # the agent asks itself, as `binding`
    with agent_part():
        from peakgate.agent.verbs import check

        checks += checks_of(check(simulate=simulate, server=server, spool=spool, control=control))
    checks += [each for each in node_checks() if each.name.endswith(".sock")]
    raise typer.Exit(show(checks, Output.json if as_json else Output.table))


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
    from peakgate.client.agent_output import show_tables

    with agent_part():
        from peakgate.agent.replay import replay as replayed
        from peakgate.agent.tables import report

        found, tables = report(*replayed(recording))
    show_tables(found, tables, as_json=as_json)


@spool_verbs.command("ls")
def list_spool(*, spool: Spool = None, as_json: AsJson = False) -> None:
    """Lists the peaks and job ends that wait; a running agent is not disturbed."""
    from contextlib import closing

    from peakgate.client.agent_output import show_tables

    with agent_part():
        from peakgate.agent.spool_view import SpoolView
        from peakgate.agent.start import default_spool
        from peakgate.agent.tables import report

        with closing(SpoolView(spool or default_spool())) as view:
            found, tables = report(view.rows(), view.events())
    show_tables(found, tables, as_json=as_json)


@spool_verbs.command("drain")
def drain_spool(*, server: AgentServer = "127.0.0.1:50551", spool: Spool = None, timeout: Timeout = 30.0) -> None:
    """Delivers what waits. Exit status 4 when something still does."""
    with agent_part():
        from peakgate.agent.verbs import drain_spool as drain

        waiting = drain(spool=spool, server=server, timeout_seconds=timeout)
    typer.echo(f"{waiting} wait" if waiting else "empty")
    raise typer.Exit(4 if waiting else 0)
