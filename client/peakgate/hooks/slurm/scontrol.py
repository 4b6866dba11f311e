"""What Slurm's own commands say of the cluster; never waited for for long."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from peakgate.client.errors import InputError

SECONDS = 20.0
"""A controller that is busy answers within its MessageTimeout of ten seconds; the client tries once more (slurm.conf(5))."""

_SETTING = re.compile(r"^(\S[^=]*?)\s*=\s?(.*)$")


class ScontrolError(Exception):
    """A command that said no, in its own words."""


def unavailable(error: ScontrolError) -> InputError:
    """The same, as an error of the command."""
    return InputError(str(error), reason="SLURM_UNAVAILABLE")


def scontrol(*words: str) -> str:
    """What `scontrol` prints. Raises ScontrolError."""
    return run("scontrol", *words)


def run(*command: str, seconds: float = SECONDS) -> str:
    """What a command prints. Raises ScontrolError."""
    conf = os.environ.get("SLURM_CONF", "")
    if conf and not Path(conf).exists():  # the commands would look for a controller to fetch it from, for twenty seconds
        raise ScontrolError(f"{conf} (SLURM_CONF) does not exist")
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)  # noqa: S603 - Slurm's
    except FileNotFoundError as error:
        raise ScontrolError(f"{command[0]} is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise ScontrolError(f"{command[0]} does not answer within {seconds:.0f} s: is the controller running?") from error
    if done.returncode:
        told = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ScontrolError(told[-1] if told else f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def settings_of(text: str) -> Mapping[str, str]:
    """The settings that `scontrol show config` prints."""
    found = (_SETTING.match(line) for line in text.splitlines())
    return {match[1]: match[2].strip() for match in found if match}
