"""What the checks are about: Slurm's settings as its controller says them, and where peakgate is said to be."""

from __future__ import annotations

import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GATE_SOCKET = Path("/run/peakgate-gate/gate.sock")
_USER = re.compile(r"(.*)\((\d+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`settings`: of `scontrol show config`. `server`: the service's address; empty: none was named."""

    settings: Mapping[str, str]
    cards: Path
    server: str = ""

    @property
    def cluster(self) -> str:
        """ClusterName."""
        return self.settings.get("ClusterName", "")

    @property
    def folder(self) -> Path:
        """Where slurm.conf is, and the scripts of its plugins beside it."""
        return Path(self.settings.get("SLURM_CONF") or "/etc/slurm/slurm.conf").parent

    @property
    def script(self) -> Path:
        """job_submit.lua."""
        return self.folder / "job_submit.lua"

    @property
    def user(self) -> str:
        """Whose process the controller is."""
        match = _USER.match(self.settings.get("SlurmUser", ""))
        return match[1] if match else "root"

    @property
    def user_id(self) -> int:
        """Its number; 0 where it has none here."""
        match = _USER.match(self.settings.get("SlurmUser", ""))
        return int(match[2]) if match else 0

    @property
    def plugins(self) -> frozenset[str]:
        """Of JobSubmitPlugins, without their kind."""
        return _names(self.settings.get("JobSubmitPlugins", ""))

    @property
    def filters(self) -> frozenset[str]:
        """Of CliFilterPlugins."""
        return _names(self.settings.get("CliFilterPlugins", ""))

    @property
    def version(self) -> tuple[int, int]:
        """Year and month of Slurm's release; zeros where it is not said."""
        match = re.match(r"(\d+)\.(\d+)", self.settings.get("SLURM_VERSION", ""))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    @property
    def backups(self) -> tuple[str, ...]:
        """Hosts of backup controllers."""
        return tuple(
            host for name, host in self.settings.items() if name.startswith("SlurmctldHost[") and name != "SlurmctldHost[0]" and host
        )


def _names(text: str) -> frozenset[str]:
    return frozenset(word.strip().rpartition("/")[2] for word in text.split(",") if word.strip() and word.strip() != "(null)")


def groups_of(user: str) -> frozenset[int]:
    """Numbers of a user's groups; none of a user that this host does not know."""
    import grp

    try:
        own = pwd.getpwnam(user).pw_gid
    except KeyError:
        return frozenset()
    return frozenset({own, *(group.gr_gid for group in grp.getgrall() if user in group.gr_mem)})
