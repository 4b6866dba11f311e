"""The entry point of `peakgate agent`. Imports the rest only when it runs, so that a missing extra is one clear line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

from peakgate.agent.errors import BAD_USAGE
from peakgate.agent.told import Told

if TYPE_CHECKING:
    from peakgate.agent.options import Options

MISSING_EXTRA = "the agent needs a package that is not installed: {name}. Install peakgate[agent]\n"


def run_agent(**told: Unpack[Told]) -> int:
    """Watches this node's GPUs and reports to `server`; returns the exit status: 0 done, 2 bad usage, 4 peaks left undelivered.

    `simulate` runs on the simulated NVML (`demo`, or a path; variables after commas: `demo,PID=123,PEAK=61G`), with its spool in a
    temporary folder; else `spool` is /var/lib/peakgate/agent.db where that can be written, or in the user's state folder. `node` is the
    host's name. `once` looks once, `duration_seconds` ends the watch, `interval_seconds` is the time between two batches. `control` is the
    socket of pause and resume, `helper_socket` that of in-process helpers: in /run/peakgate, and nowhere in a simulation. `record` is a
    file of samples to be replayed; `enable_accounting` switches the driver's accounting on, which needs root. `dcgm_jobs` is
    dcgm-exporter's job mapping folder, `gpu_numbers` (auto, index or minor) the number that its files and jobstats' are named by.
    """
    try:
        from peakgate.agent.start import start
    except ModuleNotFoundError as error:
        return _missing(error)
    return start(**told)


def run(options: Options) -> int:
    """The same with the options in one piece."""
    try:
        from peakgate.agent.start import run as run_options
    except ModuleNotFoundError as error:
        return _missing(error)
    return run_options(options)


def _missing(error: ModuleNotFoundError) -> int:
    if (error.name or "").startswith("peakgate.agent"):
        raise error
    sys.stderr.write(MISSING_EXTRA.format(name=error.name))
    return BAD_USAGE
