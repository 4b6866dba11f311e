"""How `peakgate sbatch` behaves on this host: /etc/peakgate/submit.yaml, the environment, and options of one call, the nearest wins.

It is advice where the user sits, and can be gone around; what must hold is the gate's business (`rules.py` there).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import yaml

SETTINGS_FILE = Path("/etc/peakgate/submit.yaml")
FILE_VARIABLE = "PEAKGATE_SUBMIT_SETTINGS"
MODES = ("off", "shadow", "warn", "enforce")
"""Nothing is read; judged and attached without a word; a word as well; and a job that does not fit is not submitted."""

LARGEST_CHARACTERS = 64 << 10
SLURM_CONF = Path("/etc/slurm/slurm.conf")
_CLUSTER = re.compile(r"^[ \t]*ClusterName[ \t]*=[ \t]*([\w.-]+)", re.IGNORECASE | re.MULTILINE)


class SettingsError(Exception):
    """A setting that is none, or a file that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitSettings:
    """`gate`: one decides on the controller and says what it decides, so that only what it cannot say is said here. `cards`: the
    administrator's table of GPUs by their Slurm names; `deadline_seconds`: for the service's answer."""

    mode: str = "warn"
    gate: bool = False
    server: str = ""
    cluster: str = ""
    cards: str = ""
    deadline_seconds: float = 2.0


def read_settings_of_host(own: Mapping[str, str], environment: Mapping[str, str]) -> SubmitSettings:
    """The settings in force. Raises SettingsError."""
    path = Path(environment.get(FILE_VARIABLE) or SETTINGS_FILE)
    found = _of_file(path, is_asked_for=FILE_VARIABLE in environment)
    nearer = {
        "mode": own.get("mode") or environment.get("PEAKGATE_MODE", ""),
        "server": own.get("server") or environment.get("PEAKGATE_SERVER", ""),
        "cluster": found.cluster or _cluster(environment),
    }
    settings = replace(found, **{name: value for name, value in nearer.items() if value})  # type: ignore[arg-type]  # all of them are text
    if settings.mode not in MODES:
        raise SettingsError(f"mode {settings.mode[:40]!r} is none of {', '.join(MODES)}")
    return settings


def _of_file(path: Path, *, is_asked_for: bool) -> SubmitSettings:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_CHARACTERS + 1)
        if len(text) > LARGEST_CHARACTERS:
            raise SettingsError(f"{path} is longer than {LARGEST_CHARACTERS} characters")
        read = yaml.safe_load(text) or {}
    except FileNotFoundError as error:
        if is_asked_for:
            raise SettingsError(f"{path} does not exist") from error
        return SubmitSettings()
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(f"{path} cannot be read: {type(error).__name__}") from error
    if not isinstance(read, dict):
        raise SettingsError(f"{path} holds no mapping")
    return SubmitSettings(**{str(name): _value(path, str(name), value) for name, value in read.items()})  # type: ignore[arg-type]  # checked


def _value(path: Path, name: str, value: object) -> str | float | bool:
    """A value of the type that the setting has. YAML reads a bare `off` as false."""
    kinds = {field.name: field.type for field in fields(SubmitSettings)}
    if name not in kinds:
        raise SettingsError(f"{name[:40]!r} is no setting, known are {', '.join(kinds)} ({path})")
    if kinds[name] == "bool":
        if not isinstance(value, bool):
            raise SettingsError(f"{name} needs true or false ({path})")
        return value
    if kinds[name] == "float":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 60:
            raise SettingsError(f"{name} needs seconds above 0 and at most 60 ({path})")
        return float(value)
    text = "off" if name == "mode" and value is False else value
    if not isinstance(text, str):
        raise SettingsError(f"{name} needs text ({path})")
    return text


def _cluster(environment: Mapping[str, str]) -> str:
    """ClusterName of slurm.conf, which every submit host has unless the daemons hand it out."""
    path = Path(environment.get("SLURM_CONF") or SLURM_CONF)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            found = _CLUSTER.search(file.read(1 << 20))
    except OSError:
        found = None
    return found[1].lower() if found is not None else environment.get("SLURM_CLUSTER_NAME", "")


def submitter(settings: SubmitSettings) -> str:
    """Who submits, as the gate and the agents name a user: cluster/uid."""
    return f"{settings.cluster or 'default'}/{os.getuid()}"
