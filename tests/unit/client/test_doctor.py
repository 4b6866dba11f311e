"""The check-up: each check finds its fault and names the remedy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from tests.postgres import Cluster

from peakgate.agent.selftest import finding
from peakgate.client.doctor.check import Check, State
from peakgate.client.doctor.node import node_checks
from peakgate.client.doctor.packages import package_checks
from peakgate.client.doctor.selftest import selftest_checks
from peakgate.client.doctor.service import file_system_of, service_checks
from peakgate.client.errors import InputError


def by_name(checks: Iterator[Check]) -> dict[str, Check]:
    """Checks by their name."""
    return {check.name: check for check in checks}


@contextmanager
def a_server(state: int) -> Iterator[str]:
    """A real gRPC server with the standard health service in this state."""
    servicer = health.HealthServicer()
    servicer.set("", state)
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_this_installation_is_sound() -> None:
    """The packages of the test environment pass, and pynvml belongs to nvidia-ml-py."""
    checks = by_name(package_checks())
    assert [check for check in checks.values() if check.state is State.bad] == []
    assert "from nvidia-ml-py" in checks["pynvml"].found


def test_a_serving_server_is_ok() -> None:
    """Health says SERVING."""
    with a_server(health_pb2.HealthCheckResponse.SERVING) as target:
        assert by_name(service_checks(target, None))["service"].state is State.ok


def test_a_stopping_server_is_bad() -> None:
    """Health says NOT_SERVING: it answers, and is no use."""
    with a_server(health_pb2.HealthCheckResponse.NOT_SERVING) as target:
        assert "not serving" in by_name(service_checks(target, None))["service"].found


def test_an_absent_server_is_bad() -> None:
    """Nobody listens: the remedy is to start it."""
    check = by_name(service_checks("127.0.0.1:1", None))["service"]
    assert check.state is State.bad
    assert "peakgate serve" in check.remedy


def test_a_local_database_is_ok(tmp_path: Path) -> None:
    """A SQLite file in a writable local folder passes, and the check leaves nothing behind."""
    assert by_name(service_checks(None, f"sqlite:///{tmp_path}/p.sqlite3"))["database"].state is State.ok
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none_is_bad(tmp_path: Path) -> None:
    """A database below a file cannot be made."""
    (tmp_path / "file").write_text("")
    assert by_name(service_checks(None, f"sqlite:///{tmp_path}/file/p.sqlite3"))["database"].state is State.bad


def test_a_password_is_not_shown() -> None:
    """A database that does not answer is named without its password."""
    check = by_name(service_checks(None, "postgresql://me:secret@127.0.0.1:1/x"))["database"]
    assert check.state is State.bad
    assert "secret" not in check.found + check.remedy


def test_a_server_that_answers_is_named(postgres_server: Cluster) -> None:
    """PostgreSQL is asked with the service's own driver and settings."""
    check = by_name(service_checks(None, postgres_server.url("postgres")))["database"]
    assert (check.state, check.found) == (State.ok, f"{postgres_server.url('postgres')} answers")


@pytest.mark.parametrize(
    ("path", "want"),
    [("/home/me/x.db", "nfs4"), ("/var/x.db", "ext4"), ("/homes/x.db", "ext4"), ("/home/local/x.db", "xfs")],
)
def test_the_longest_mount_point_decides(path: str, want: str) -> None:
    """A mount below another one hides it; a name that merely starts alike does not."""
    mounts = [("/", "ext4"), ("/home", "nfs4"), ("/home/local", "xfs")]
    assert file_system_of(Path(path), mounts) == want


def test_sockets(tmp_path: Path) -> None:
    """A socket is ok, its absence a note, a file in its place a fault."""
    (tmp_path / "gate.sock").write_text("")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "agent.sock"))
        checks = by_name(node_checks(tmp_path))
    assert checks["agent.sock"].state is State.ok
    assert checks["gate.sock"].state is State.bad
    assert by_name(node_checks(tmp_path / "nowhere"))["agent.sock"].state is State.note


def test_the_agents_findings_become_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """passed, noted and failed are ok, note and bad, each with what was seen and what to do."""
    findings = [finding.passed("gpus", "8"), finding.noted("mig", "empty", "create"), finding.failed("pids", "4 unknown", "hostPID")]
    monkeypatch.setattr("peakgate.agent.selftest.run.selftest", lambda simulate: findings)
    assert [(each.state, each.name, each.found, each.remedy) for each in selftest_checks(None)] == [
        (State.ok, "gpus", "8", ""),
        (State.note, "mig", "empty", "create"),
        (State.bad, "pids", "4 unknown", "hostPID"),
    ]


def test_a_scenario_that_is_none_is_bad_input() -> None:
    """The agent's own error reaches the caller as one of the client's, with status 2."""
    with pytest.raises(InputError, match="no scenario 'nowhere'") as caught:
        list(selftest_checks("nowhere"))
    assert caught.value.exit_status == 2
