"""`peakgate calibration simulate` and `export`: what a site's own past says of its policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.v1.calibration_simulation_pb2 import SimulationSettings

History = Annotated[
    str | None,
    typer.Option("--history", metavar="FILE", help="JSON Lines, one attempt each; - for standard input. Default: the service's own."),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="fixed:15 (per cent of the card), alpha:0.05, alpha:0.05/0.01 (where unsure), costs:19:1, site. Default: the usual ones.",
    ),
]
Share = Annotated[float, typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Of the rejected jobs, which run all the same and teach.")]
Costs = Annotated[str, typer.Option(metavar="OOM:REJECTION", help="What the two mistakes cost, to mark the policy that costs least.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only attempts that ended from then on: 90d ago, a time, or seconds.")]


def simulate(
    *,
    history: History = None,
    policy: Policies = None,
    overrides: Share = 0.05,
    costs: Costs = "19:1",
    since: Since = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Replays a history under several policies: how many out-of-memories and rejections each would have given."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.errors import InputError
    from peakgate.client.history.read import read_history
    from peakgate.client.history.simulate import simulate as simulated
    from peakgate.client.output import error_console, human_console, write_all, write_json
    from peakgate.client.render.simulation import print_refused, print_simulation
    from peakgate.v1.document import answer_to_dict

    if history is None:
        require_store(server, db)
    elif since is not None:
        raise InputError("--since is for the service's own history; leave lines out of the file instead", reason="USAGE")
    settings = _settings(policy or [], overrides, costs, since, own_history=history is None)
    with open_client(server, db) as client:
        answer = simulated(client, settings, read_history(history) if history is not None else ())
    print_refused(error_console(), answer, name=history or "")
    if output is Output.table:
        print_simulation(human_console(output), answer)
    elif output is Output.json:
        write_json(answer_to_dict(answer), output)
    else:
        write_all([answer_to_dict(each) for each in answer.policies], output)


def export(*, since: Since = None, server: Server = None, db: Database = None) -> None:
    """Writes the service's own history, as `simulate` reads it: JSON Lines, oldest end first."""
    import time

    from peakgate.client.connect import open_client, require_store
    from peakgate.client.history.write import attempt_as_dict
    from peakgate.client.imports.window import moment
    from peakgate.client.output import write_json

    require_store(server, db)
    since_seconds = moment(since, now=time.time()) if since is not None else 0
    with open_client(server, db) as client:
        for attempt in client.calibrations.export_history(since_seconds=since_seconds):
            write_json(attempt_as_dict(attempt), Output.jsonl)


def _settings(policies: list[str], overrides: float, costs: str, since: str | None, *, own_history: bool) -> SimulationSettings:
    import time

    from peakgate.client.imports.window import moment
    from peakgate.v1.calibration_simulation_pb2 import SimulationSettings
    from peakgate.v1.times import timestamp

    oom_cost, rejection_cost = _costs(costs)
    settings = SimulationSettings(
        policies=policies, override_share=overrides, oom_cost=oom_cost, rejection_cost=rejection_cost, own_history=own_history
    )
    if since is not None:
        settings.since_time.CopyFrom(timestamp(moment(since, now=time.time())))
    return settings


def _costs(text: str) -> tuple[float, float]:
    from peakgate.client.errors import InputError

    oom, _, rejection = text.partition(":")
    try:
        costs = float(oom), float(rejection)
    except ValueError as error:
        raise InputError(f"--costs {text!r}: state two numbers, such as 19:1", reason="USAGE") from error
    if not all(0 < cost < 1e12 for cost in costs):
        raise InputError(f"--costs {text!r}: both must be positive numbers", reason="USAGE")
    return costs
