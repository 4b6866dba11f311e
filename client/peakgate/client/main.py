"""The one console script: runs a verb, and turns every error into one clear block and an exit status."""

from __future__ import annotations

import os
import sys

from peakgate.client.slurm_defaults import SUBMIT_PROGRAMS

_FAULT_STATUS = 4
"""A fault of the program itself is no verdict: like a service that is away, never the 1 of a rejection."""


def main() -> None:
    """Entry of `peakgate`. Ends the process."""
    if sys.argv[1:2] and sys.argv[1] in SUBMIT_PROGRAMS:  # as quick as that one: no command line of ours is built for another's words
        from peakgate.hooks.slurm.submit import run

        sys.exit(run(sys.argv[1], sys.argv[2:]))
    # gRPC's own log lines on standard error are for its developers; a failed call is reported as an error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import typer  # noqa: F401 - asked for first, so that its absence is one clear line
    except ImportError:
        sys.exit("peakgate: the command needs typer, rich and pyyaml: pip install 'peakgate[client]'")
    sys.exit(_run())


def _run() -> int:
    from peakgate.client.streams import OutputError, output_failed, prepare

    status = prepare(sys.argv[1:])
    if status:
        return status
    try:
        return _reported()
    except OutputError as error:
        return output_failed(error.strerror)
    except Exception:  # noqa: BLE001 - the last line of defence; see _FAULT_STATUS
        import traceback

        traceback.print_exc()
        return _FAULT_STATUS


def _reported() -> int:
    from peakgate.client.app import app_for
    from peakgate.client.errors import PeakgateError

    try:
        app_for(sys.argv[1:])()
    except PeakgateError as error:
        from peakgate.client.output import report

        return report(error, sys.argv)
    return 0
