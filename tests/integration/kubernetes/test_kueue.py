"""The AdmissionCheck controller against an API server's semantics and a real service."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from kubernetes.client import ApiClient, Configuration
from tests.integration.cli import PEAKGATE, peakgate
from tests.integration.kubernetes.api_server import KUEUE, LEASES, ApiServer
from tests.integration.kubernetes.api_server_http import serving
from tests.integration.kubernetes.kueue_objects import LARGE, MIDDLE, SMALL, a_check, a_cluster, a_workload

from peakgate.client.commands import kueue as commands
from peakgate.hooks.kubernetes.kueue.cluster import Cluster
from peakgate.hooks.kubernetes.kueue.controller import Controller
from peakgate.hooks.kubernetes.kueue.deciding import MOST_RETRIES, Judged
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.kubernetes.kueue.permissions import PERMISSIONS
from peakgate.hooks.kubernetes.kueue.release import release
from peakgate.hooks.kubernetes.kueue.run import KueueOptions, Replica
from peakgate.server.embedded import open_embedded


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with a database of its own."""
    with open_embedded(f"sqlite:///{tmp_path_factory.mktemp('kueue') / 'peakgate.db'}") as found:
        yield found


def api_client(address: str) -> ApiClient:
    """The official client, as a pod or a person has it."""
    configuration = Configuration()
    configuration.host = address
    return ApiClient(configuration)


def cluster_at(address: str) -> Cluster:
    """What the controller makes of it."""
    return Cluster(api_client(address))


@contextmanager
def a_replica(address: str, target: str, *, identity: str = "one", **options: Any) -> Iterator[Replica]:
    """A replica that runs while the block does."""
    told: dict[str, Any] = {"server": target, "namespace": "peakgate", "lease": "peakgate-kueue", "lease_seconds": 1.5} | options
    replica = Replica(cluster_at(address), KueueOptions(**told), identity=identity)
    thread = threading.Thread(target=replica.run, daemon=True)
    thread.start()
    try:
        yield replica
    finally:
        replica.stopped.set()
        thread.join(10)
        assert not thread.is_alive()


@contextmanager
def running(server: ApiServer, target: str, **options: Any) -> Iterator[Replica]:
    """A server and one replica."""
    with serving(server) as address, a_replica(address, target, **options) as replica:
        yield replica


def is_settled(server: ApiServer, name: str, check: str = "peakgate") -> Callable[[], bool]:
    """Whether the check has another state than Pending."""
    return lambda: server.state(name, check)["state"] != "Pending"


def is_admitted(server: ApiServer, name: str) -> Callable[[], bool]:
    """Whether the queue let the workload go."""
    return lambda: any(
        each["type"] == "Admitted" for each in server.get(KUEUE, "workloads", name, "team-a")["status"].get("conditions", [])
    )


VERDICTS = {
    "fits": ("enforce", a_workload(job=SMALL), "Ready", "fits: a GPU needs"),
    "too-large": ("enforce", a_workload(job=LARGE), "Rejected", "usable of h100-80gb"),
    "only-warned": ("warn", a_workload(job=LARGE), "Ready", "does not fit, admitted all the same"),
    "by-default": ("", a_workload(job=LARGE), "Ready", "does not fit, admitted all the same"),
    "off": ("off", a_workload(job=LARGE), "Ready", "the check is off"),
    "bare-flavor": ("enforce", a_workload(job=LARGE, flavor="bare"), "Ready", "not checked: the pod does not say which GPU it takes"),
    "states-alone": ("enforce", a_workload(job=LARGE | {"batch": {}}), "Rejected", "usable of h100-80gb"),
    "undecided": ("enforce", a_workload(job=SMALL | {"batch": {}}), "Ready", "cannot be judged"),
    "unread": ("enforce", a_workload(), "Ready", "not checked"),
    "no-job": ("enforce", a_workload(job={"model": {"preset": "no-such-model"}}), "Ready", "not checked"),
    "no-gpu": ("enforce", a_workload(job=LARGE, gpus=0), "Ready", "no pod asks for a GPU"),
    "small-card": ("enforce", a_workload(job=MIDDLE, flavor="t4"), "Rejected", "usable of t4-16gb"),
    "large-card": ("enforce", a_workload(job=MIDDLE), "Ready", "fits: a GPU needs"),
}
"""Name of a workload -> mode of its check, the workload, and what becomes of it."""


@pytest.fixture(scope="module")
def judged(target: str) -> ApiServer:
    """A server whose controller has judged all of them."""
    server = a_cluster(*(a_check(f"check-{mode}", mode=mode) for mode in ("enforce", "warn", "off", "")))
    for name, (mode, workload, _, _) in VERDICTS.items():
        (state,) = workload["status"]["admissionChecks"]
        named = workload | {"metadata": workload["metadata"] | {"name": name, "uid": name}}
        server.put(KUEUE, "workloads", named | {"status": workload["status"] | {"admissionChecks": [state | {"name": f"check-{mode}"}]}})
    with running(server, target):
        for name, (mode, *_) in VERDICTS.items():
            server.wait(is_settled(server, name, f"check-{mode}"))
    return server


@pytest.mark.parametrize("name", VERDICTS)
def test_a_state_for_each_verdict(judged: ApiServer, name: str) -> None:
    """Only a rejection that is sure rejects, on the chosen flavor and where that was asked for; all else is Ready and says why."""
    mode, _, want_state, want_words = VERDICTS[name]
    told = judged.state(name, f"check-{mode}")
    assert told["state"] == want_state
    assert want_words in told["message"]
    assert "requeueAfterSeconds" not in told


def test_the_check_becomes_active_and_the_pods_carry_the_prediction(target: str) -> None:
    """The queue is usable, and what agents see on the node leads back to the prediction."""
    server = a_cluster()
    with running(server, target):
        server.wait(lambda: "status" in server.get(KUEUE, "admissionchecks", "peakgate"))
        server.put(KUEUE, "workloads", a_workload(job=SMALL))
        server.wait(is_admitted(server, "train"))
    (condition,) = server.get(KUEUE, "admissionchecks", "peakgate")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["observedGeneration"]) == ("Active", "True", 1)
    (update,) = server.state("train")["podSetUpdates"]
    assert update["name"] == "main"
    assert update["annotations"]["peakgate.io/prediction"].startswith("predictions/")


def test_only_its_own_pending_checks_are_touched(target: str) -> None:
    """Another controller's check, a queue that did not opt in and a workload without quota stay as they are."""
    server = a_cluster(a_check(), a_check("theirs", controller="example.com/other"))
    server.put(KUEUE, "workloads", a_workload("both", SMALL, checks=("peakgate", "theirs")))
    server.put(KUEUE, "workloads", a_workload("other", SMALL, checks=("theirs",)))
    server.put(KUEUE, "workloads", a_workload("waits", SMALL, has_quota=False))
    with running(server, target):
        server.wait(is_settled(server, "both"))
        server.put(KUEUE, "workloads", a_workload("last", SMALL))
        server.wait(is_settled(server, "last"))
    assert server.state("both", "theirs")["state"] == "Pending"
    assert server.state("other", "theirs")["state"] == "Pending"
    assert server.state("waits")["state"] == "Pending"
    assert "status" not in server.get(KUEUE, "admissionchecks", "theirs")


def test_a_conflict_and_a_fault_of_the_api_server_are_tried_again(target: str) -> None:
    """409 from another writer, and 500: the state is set in the end, and the failures are counted."""
    server = a_cluster()
    with running(server, target) as replica:
        server.wait(lambda: "status" in server.get(KUEUE, "admissionchecks", "peakgate"))
        server.fail = [409, 500]
        server.put(KUEUE, "workloads", a_workload(job=SMALL))
        server.wait(is_admitted(server, "train"))
        counted = {status: replica.metrics.errors.labels(status)._value.get() for status in ("409", "500")}
    assert counted == {"409": 1.0, "500": 1.0}


def test_a_version_that_is_gone_is_listed_anew(target: str) -> None:
    """What happened while nobody could watch is found by the list (410 Gone)."""
    server = a_cluster()
    with running(server, target):
        server.wait(lambda: "status" in server.get(KUEUE, "admissionchecks", "peakgate"))
        with server.changed:
            server.put(KUEUE, "workloads", a_workload(job=SMALL))
            server.forget()
        server.wait(is_admitted(server, "train"))


def test_a_second_replica_takes_over(target: str) -> None:
    """The first one stops: it gives the lease back, the other one leads and the queue moves on."""
    server = a_cluster()
    with serving(server) as address, ExitStack() as second:
        with a_replica(address, target, identity="one"):
            server.wait(lambda: server.get(LEASES, "leases", "peakgate-kueue", "peakgate").get("spec", {}).get("holderIdentity") == "one")
            two = second.enter_context(a_replica(address, target, identity="two"))
            server.wait(two.is_ready)
            assert two.metrics.leads._value.get() == 0
        server.put(KUEUE, "workloads", a_workload(job=SMALL))
        server.wait(is_admitted(server, "train"))
        assert server.get(LEASES, "leases", "peakgate-kueue", "peakgate")["spec"]["holderIdentity"] == "two"
    assert server.get(LEASES, "leases", "peakgate-kueue", "peakgate")["spec"]["holderIdentity"] == ""


def test_without_a_lease_nobody_leads_and_only_that_is_measured(target: str) -> None:
    """A Lease that was deleted is not made anew: what waits is not counted then, so the alert must look at who leads."""
    server = a_cluster()
    with running(server, target) as replica:
        server.wait(lambda: replica.metrics.leads._value.get() == 1)
        server.delete(LEASES, "leases", "peakgate-kueue", "peakgate")
        server.wait(lambda: replica.metrics.leads._value.get() == 0)
        server.put(KUEUE, "workloads", a_workload(job=SMALL))
        assert not is_settled(server, "train")()
        assert (replica.metrics.waiting._value.get(), replica.metrics.oldest._value.get()) == (0, 0)


def test_an_api_server_that_comes_back_is_followed_again(target: str) -> None:
    """The leader cannot renew and steps down; it leads anew, and finds what came meanwhile."""
    server = a_cluster()
    with running(server, target) as replica:
        server.wait(lambda: replica.metrics.leads._value.get() == 1)
        server.is_down = True
        server.wait(lambda: replica.metrics.leads._value.get() == 0)
        server.put(KUEUE, "workloads", a_workload(job=SMALL))
        server.is_down = False
        server.wait(is_admitted(server, "train"))


def test_without_a_controller_the_queue_waits_until_it_is_released(target: str, tmp_path: Path) -> None:
    """Kueue keeps an active check active and its workloads pending: the break-glass lets them go, by hand and without a service."""
    server = a_cluster()
    with serving(server) as address:
        with a_replica(address, target):
            server.wait(lambda: "status" in server.get(KUEUE, "admissionchecks", "peakgate"))
        server.put(KUEUE, "workloads", a_workload("stuck", LARGE))
        server.put(KUEUE, "workloads", a_workload("stuck-too", LARGE))
        assert server.get(KUEUE, "admissionchecks", "peakgate")["status"]["conditions"][0]["status"] == "True"
        assert not is_settled(server, "stuck")()
        access = str(a_kubeconfig(tmp_path, address))
        other = peakgate("kueue", "release", "--cluster-queue", "nobody", KUBECONFIG=access)
        done = peakgate("kueue", "release", "--reason", "the cluster is on fire", KUBECONFIG=access)
        assert (other.status, other.out, "nothing waits in the ClusterQueue nobody" in other.err) == (0, "", True)
        assert (done.status, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == ["team-a/stuck peakgate: released", "team-a/stuck-too peakgate: released"]
    assert server.state("stuck")["message"] == "not checked: released by hand (the cluster is on fire)"
    assert is_admitted(server, "stuck")()


def test_a_release_that_repeats_outlives_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called when the cluster is in trouble: one failed call does not end it."""
    server, paused = a_cluster(), list[float]()
    server.put(KUEUE, "workloads", a_workload("stuck", LARGE))
    server.is_down = True

    def pause(seconds: float) -> None:
        paused.append(seconds)
        server.is_down = False
        if len(paused) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(commands, "time", SimpleNamespace(sleep=pause))
    with serving(server) as address:
        monkeypatch.setattr("peakgate.hooks.kubernetes.api.connected", lambda _: api_client(address))
        with pytest.raises(KeyboardInterrupt):
            commands.release(reason="r", every=0.5)
    assert server.state("stuck")["message"] == "not checked: released by hand (r)"


@contextmanager
def deciding(server: ApiServer, judge: Callable[[object], Judged]) -> Iterator[KueueMetrics]:
    """A controller that leads, with a judge of the test's own."""
    metrics = KueueMetrics()
    with serving(server) as address:
        controller = Controller(cluster_at(address), judge, metrics=metrics)
        controller.start()
        try:
            yield metrics
        finally:
            controller.stop()


@pytest.mark.parametrize("counts", [True, False], ids=["kueue counts", "an older kueue does not"])
def test_a_service_that_is_away_holds_nobody_up_for_ever(counts: bool) -> None:
    """Three times Retry, later each time; then the workload goes on unchecked."""
    server = a_cluster()
    server.counts_retries = counts
    server.put(KUEUE, "workloads", a_workload(job=SMALL))
    with deciding(server, lambda _: Judged(is_away=True, problem="away")) as metrics:
        server.wait(is_admitted(server, "train"))
        server.wait(lambda: metrics.decisions.labels("unchecked")._value.get() == 1)
        assert metrics.decisions.labels("retry")._value.get() == MOST_RETRIES
    told = [
        each["status"]["admissionChecks"][0]
        for *_, kind, each in server.events
        if each["metadata"]["name"] == "train" and kind == "MODIFIED"
    ]
    assert [each["requeueAfterSeconds"] for each in told if each["state"] == "Retry"] == [60, 120, 240]
    assert server.state("train")["message"] == "not checked: the service was away 4 times"


def test_a_fault_of_its_own_holds_nobody_up() -> None:
    """A bug while judging: the workload goes on, and the metric tells."""
    server = a_cluster()
    server.put(KUEUE, "workloads", a_workload(job=SMALL))

    def judge(_: object) -> Judged:
        raise ZeroDivisionError

    with deciding(server, judge) as metrics:
        server.wait(is_admitted(server, "train"))
        server.wait(lambda: metrics.decisions.labels("fault")._value.get() == 1)
    assert server.state("train")["message"].startswith("not checked: the controller has a fault")


def test_the_program_leads_answers_probes_and_gives_the_lease_back(target: str, tmp_path: Path) -> None:
    """`peakgate kueue run` as a pod runs it, ended as the kubelet does."""
    server = a_cluster()
    server.put(KUEUE, "workloads", a_workload(job=SMALL))
    with serving(server) as address, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        taken.close()
        environment = {**os.environ, "KUBECONFIG": str(a_kubeconfig(tmp_path, address)), "POD_NAME": "pod-1", "PEAKGATE_SERVER": target}
        process = subprocess.Popen([PEAKGATE, "kueue", "run", "--metrics-port", str(port)], env=environment, stdout=subprocess.DEVNULL)
        try:
            server.wait(is_admitted(server, "train"), 60)
            server.wait(lambda: 'peakgate_kueue_decisions_total{reason="fits"} 1.0' in page(port, "/metrics"))
            told = {path: page(port, path) for path in ("/metrics", "/healthz", "/readyz")}
            with pytest.raises(HTTPError):
                page(port, "/other")
        finally:
            process.terminate()
        assert process.wait(20) == 0
    assert told["/healthz"] == told["/readyz"] == "ok\n"
    assert "peakgate_kueue_leader 1.0" in told["/metrics"].splitlines()
    assert server.get(LEASES, "leases", "peakgate-kueue", "peakgate")["spec"]["holderIdentity"] == ""


def page(port: int, path: str) -> str:
    """What the controller serves. Raises HTTPError."""
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return str(answer.read().decode())


def a_kubeconfig(folder: Path, address: str) -> Path:
    """What a person has."""
    config = folder / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{address}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    )
    return config


def test_an_annotation_releases_what_waits_and_what_comes(target: str) -> None:
    """The break-glass that needs no program: for a controller that runs and decides wrongly."""
    server = a_cluster(a_check(mode="enforce", release="wrong figures"))
    server.put(KUEUE, "workloads", a_workload(job=LARGE))
    with running(server, target):
        server.wait(is_admitted(server, "train"))
    assert server.state("train")["message"] == "not checked: the check is released (wrong figures)"


def test_a_release_meets_a_conflict(target: str) -> None:
    """Another writer was quicker: it reads again."""
    server = a_cluster()
    server.put(KUEUE, "workloads", a_workload(job=LARGE))
    server.fail = [409]
    with serving(server) as address:
        assert [each.problem for each in release(cluster_at(address), "r")] == [""]
        assert list(release(cluster_at(address), "r")) == []


def test_it_asks_for_no_more_than_its_role_grants(target: str) -> None:
    """Every call of a replica with all options stands in the table that the chart's roles are made of."""
    server = a_cluster()
    server.put(KUEUE, "workloads", a_workload(job=SMALL))
    with running(server, target, nodes=True, claims=True):
        server.wait(is_admitted(server, "train"))
    granted = {(each.resource.split("/")[0], verb) for each in PERMISSIONS for verb in each.verbs}
    asked = {(kind, verb) for verb, path in server.calls if (kind := _kind(path)) for verb in [_verb(verb, path)]}
    assert asked <= granted | {("apis", "list")}
    assert {kind for kind, _ in asked} >= {"nodes", "workloads", "leases", "admissionchecks", "resourceflavors", "resourceslices"}


def _kind(path: str) -> str:
    parts = [each for each in path.strip("/").removesuffix("/status").split("/") if each]
    if "namespaces" in parts:
        return parts[parts.index("namespaces") + 2]
    return parts[-1] if parts[0] == "api" or len(parts) in (1, 4) else parts[3]


def _verb(verb: str, path: str) -> str:
    if verb != "GET":
        return {"PATCH": "patch", "PUT": "update"}[verb]
    return "get" if "/namespaces/" in path else "list"
