"""How `peakgate sbatch` behaves on a host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peakgate.hooks.slurm.submit_settings import SettingsError, SubmitSettings, read_settings_of_host, submitter


def settings(tmp_path: Path, text: str = "", own: dict[str, str] | None = None, **environment: str) -> SubmitSettings:
    """The settings with this file."""
    file = tmp_path / "submit.yaml"
    file.write_text(text)
    conf = tmp_path / "slurm.conf"
    return read_settings_of_host(own or {}, {"PEAKGATE_SUBMIT_SETTINGS": str(file), "SLURM_CONF": str(conf), **environment})


def test_without_a_file_it_warns() -> None:
    """And predicts on this host."""
    found = read_settings_of_host({}, {"SLURM_CONF": "/nowhere"})
    assert (found.mode, found.server, found.deadline_seconds) == ("warn", "", 2.0)


def test_the_nearest_wins(tmp_path: Path) -> None:
    """File, environment, option."""
    text = "mode: shadow\nserver: gate:1\ncluster: a\n"
    assert settings(tmp_path, text) == SubmitSettings(mode="shadow", server="gate:1", cluster="a")
    assert settings(tmp_path, text, PEAKGATE_MODE="enforce", PEAKGATE_SERVER="other:1").server == "other:1"
    assert settings(tmp_path, text, {"mode": "warn"}, PEAKGATE_MODE="enforce").mode == "warn"


def test_a_gate_is_named_in_the_file(tmp_path: Path) -> None:
    """There is none unless it says so."""
    assert [settings(tmp_path, text).gate for text in ("", "gate: true\n", "gate: false\n")] == [False, True, False]


def test_a_bare_off_is_the_mode(tmp_path: Path) -> None:
    """YAML 1.1 takes it for false."""
    assert settings(tmp_path, "mode: off\n").mode == "off"


def test_the_cluster_is_that_of_slurm_conf(tmp_path: Path) -> None:
    """Slurm itself has its name in lower case."""
    (tmp_path / "slurm.conf").write_text("# ClusterName=no\nSlurmctldHost=a\nClusterName=Alps # here\n")
    found = settings(tmp_path)
    assert found.cluster == "alps"
    assert submitter(found) == f"alps/{os.getuid()}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("moed: warn\n", "'moed' is no setting, known are mode, gate, server"),
        ("mode: loud\n", "mode 'loud' is none of off, shadow, warn, enforce"),
        ("deadline_seconds: 0\n", "deadline_seconds needs seconds above 0"),
        ("server: [a]\n", "server needs text"),
        ("gate: maybe\n", "gate needs true or false"),
        ("- a\n", "holds no mapping"),
        ("a: [\n", "cannot be read"),
        ("mode: enforce\n" + "#" * (1 << 16), "is longer than 65536 characters"),
    ],
)
def test_a_setting_that_is_none_is_named(tmp_path: Path, text: str, want: str) -> None:
    """With its file, and what is allowed."""
    with pytest.raises(SettingsError, match=want.replace("[", r"\[")):
        settings(tmp_path, text)
