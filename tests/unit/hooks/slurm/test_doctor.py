"""Checks of a Slurm installation that a test cluster cannot be broken for: settings, users, releases."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from peakgate.client.doctor.check import Check, State
from peakgate.hooks.slurm.doctor import gate, hook, jobs, service
from peakgate.hooks.slurm.doctor.hook import Script
from peakgate.hooks.slurm.doctor.site import Site, groups_of
from peakgate.hooks.slurm.nodes import Node
from peakgate.hooks.slurm.tres import Item

GOOD = {
    "ClusterName": "hpc",
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_VERSION": "22.05.8",
    "SlurmUser": "nobody(65534)",
    "JobSubmitPlugins": "require_timelimit,lua",
    "CliFilterPlugins": "(null)",
    "PluginDir": "/nonexistent:/nowhere",
    "SlurmctldHost[0]": "a",
    "AccountingStorageType": "accounting_storage/slurmdbd",
}


def a_site(cards: Path = Path("/nonexistent"), /, **settings: str) -> Site:
    """Of these settings over good ones."""
    return Site(settings=GOOD | settings, cards=cards)


def told(check: Check) -> tuple[str, bool]:
    """Its state, and whether it says what to do."""
    return check.state.value, bool(check.remedy)


def test_what_a_site_is() -> None:
    """Read from what the controller prints."""
    site = a_site()
    assert (site.cluster, site.user, site.user_id, site.version) == ("hpc", "nobody", 65534, (22, 5))
    assert (site.script, site.plugins) == (Path("/etc/slurm/job_submit.lua"), frozenset({"require_timelimit", "lua"}))
    assert Site(settings={}, cards=Path()).version == (0, 0)
    assert a_site(JobSubmitPlugins="job_submit/lua").plugins == frozenset({"lua"})
    assert groups_of("nobody-by-this-name") == frozenset()


@pytest.mark.parametrize(("version", "want"), [("22.05.8", "ok"), ("24.11.1", "note"), ("19.05.2", "bad"), ("", "bad")])
def test_the_release(version: str, want: str) -> None:
    """Tested, later, too old."""
    assert hook.release(a_site(SLURM_VERSION=version)).state == want


def test_the_plugin() -> None:
    """It must be configured; on another host its file cannot be looked at."""
    assert told(hook.plugin(a_site())) == ("ok", False)
    assert told(hook.plugin(a_site(JobSubmitPlugins="(null)"))) == ("bad", True)
    assert told(hook.plugin_file(a_site())) == ("note", True)


def test_the_plugin_says_its_lua(tmp_path: Path) -> None:
    """By the library that it is linked with."""
    path = tmp_path / hook.PLUGIN
    for content, want in ((b"\x7fELF\0liblua5.1.so.0\0", "5.1"), (b"\0liblua-5.4.so\0", "5.4"), (b"\0libm.so", "")):
        path.write_bytes(content)
        assert hook.lua_version(path) == want
    assert told(hook.plugin_file(a_site(PluginDir=str(tmp_path)))) == ("ok", False)
    assert hook.lua_version(tmp_path / "none") == ""


def test_a_script_that_the_controller_cannot_read(tmp_path: Path) -> None:
    """Its user is not its owner."""
    site = a_site(SLURM_CONF=str(tmp_path / "slurm.conf"))
    site.script.write_text("return slurm.SUCCESS")
    site.script.chmod(0o600)
    assert told(hook.script_file(site)) == ("bad", True)
    site.script.chmod(0o644)
    assert told(hook.script_file(site)) == ("ok", False)


def test_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script is not tried, which is no fault of the site's."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    script = hook.try_script(a_site())
    assert told(hook.script_loads(a_site(), script)) == ("note", True)
    assert "no lua5.1" in script.problem


def test_the_module_is_found_on_the_path(tmp_path: Path) -> None:
    """Of Lua 5.1, which does not say where it found it."""
    (tmp_path / "peakgate.lua").write_text("local VERSION = 1\n")
    script = Script({"module": "table", "path": f"./?.lua;/nonexistent/?.lua;{tmp_path}/?.lua", "socket": "/run/x.sock"})
    check = hook.module(script)
    assert (check.state, str(tmp_path / "peakgate.lua") in check.found, "/run/x.sock" in check.found) == (State.ok, True, True)


@pytest.mark.parametrize(("mode", "group", "want"), [(0o660, 0, "bad"), (0o666, 0, "ok"), (0o660, 65534, "ok"), (0o600, 65534, "bad")])
def test_who_may_write_to_the_socket(tmp_path: Path, mode: int, group: int, want: str) -> None:
    """The controller's user, by its own right, its group's or everybody's."""
    if os.geteuid():
        pytest.skip("only root can give a socket to another group")
    path = tmp_path / "gate.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        os.chown(path, 0, group)
        path.chmod(mode)
        check = gate.gate_socket(a_site(), path)
        assert told(check) == (want, want == "bad")
        assert gate.gate_socket(a_site(SlurmUser="root(0)"), path).state is State.ok


def test_backup_controllers_need_a_gate_too() -> None:
    """Each asks on its own host."""
    assert list(gate.backups(a_site())) == []
    (check,) = gate.backups(a_site(**{"SlurmctldHost[1]": "b"}))
    assert ("b" in check.found, check.state) == (True, State.note)


@pytest.mark.parametrize(("skew", "want"), [(0.2, "ok"), (-4.0, "ok"), (30.0, "bad"), (-30.0, "bad")])
def test_clocks(skew: float, want: str) -> None:
    """A few seconds are none."""
    assert told(service.clock(skew)) == (want, want == "bad")


def test_nodes_of_a_cloud_are_not_missed() -> None:
    """One that is not there has no agent; one without GPUs needs none."""
    cards = (Item("gpu", "h100", 8),)
    nodes = [Node(name="n1"), Node(name="n2", gpus=cards, comes_and_goes=True)]
    assert service.agents(nodes, []).state is State.ok
    assert service.agents([*nodes, Node(name="n3", gpus=cards)], []).found == "nothing was heard of n3 (1 of 1)"


def test_a_cluster_without_gpus() -> None:
    """Nothing to judge is a fault of the configuration."""
    assert told(service.cards(a_site(), [Node(name="n1")], [])) == ("bad", True)


def test_jobs_are_looked_at_if_they_ask_for_gpus() -> None:
    """By any of the ways to ask; only the newest count."""
    line = "JobId={} JobName=x AdminComment={} TresPerNode=gres:gpu:1"
    (first, *_) = jobs.job_checks(a_site(), "JobId=1 JobName=x\nNo jobs in the system\n")
    assert told(first) == ("note", False)
    many = "\n".join([line.format(1, "peakgate=unchecked"), *(line.format(number, "peakgate=abc") for number in range(2, 30))])
    (first, *_) = jobs.job_checks(a_site(), many)
    assert (first.state, first.found) == (
        State.ok,
        "of the last 20 jobs with GPUs 20 were checked, 0 admitted unchecked, 0 bear no stamp",
    )
    (first, *_) = jobs.job_checks(a_site(), "JobId=1 TresPerTask=gres/gpu=2\nJobId=2 TresPerJob=gres/gpu:2 AdminComment=other\n")
    assert told(first) == ("note", True)
    assert first.found.endswith("2 bear no stamp")


def test_accounting_and_submit_hosts() -> None:
    """What is missing is a note: the gate works without."""
    assert told(jobs.accounting(a_site())) == ("ok", False)
    assert told(jobs.accounting(a_site(AccountingStorageType="accounting_storage/none"))) == ("note", True)
    assert told(jobs.submit_host(a_site())) == ("note", True)
    assert told(jobs.submit_host(a_site(CliFilterPlugins="lua"))) == ("ok", False)
