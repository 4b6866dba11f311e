"""The AdmissionCheck controller that the chart installs, on a real cluster with Kueue's own CRDs: states, two replicas, the ways out.

Kueue itself is not there: what it would write (quota, flavors, Pending) an administrator writes here.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.bench.programs import ROOT
from tests.integration.cli import peakgate
from tests.integration.kubernetes.kueue_objects import LARGE, SMALL, a_flavor, a_workload
from tests.integration.kubernetes.real_api_server import MERGE_PATCH, is_true, kueue_definitions, wait_until
from tests.integration.kubernetes.real_cluster import Cluster, cluster
from tests.integration.kubernetes.real_pods import RunningPod
from tests.integration.kubernetes.real_rights import asked_for, granted, refused
from tests.integration.kubernetes.rights import wanted

from peakgate.hooks.kubernetes.kueue.permissions import PERMISSIONS

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{KUEUE}/namespaces/team-a/workloads"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/peakgate/leases/peakgate-kueue"
INSTALL = """
kubectl create namespace team-a
kubectl create namespace peakgate
helm install peakgate ./deploy/helm/peakgate --namespace peakgate --wait --values deploy/helm/examples/warn-one-namespace.yaml \
  --set kueue.enabled=true --set kueue.mode=enforce
"""
PAGES = [(ROOT / name).read_text() for name in ("deploy/README.md", "docs/kueue.md")]
CHECKED, UNCHECKED = (found for page in PAGES for found in re.findall(r"kubectl patch clusterqueue QUEUE .*$", page, re.MULTILINE))
"""A queue that names the check, as one page says it, and the way out, as the other does."""

TAKE_OVER_SECONDS = 30.0
"""Two durations of a lease."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With Kueue's kinds, a queue that names the check as the page says, and peakgate."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        found.api.define(*kueue_definitions())
        found.told(INSTALL)
        made(found, "ResourceFlavor", a_flavor())
        made(found, "ClusterQueue", {"metadata": {"name": "gpus"}, "spec": {"namespaceSelector": {}}})
        made(found, "LocalQueue", {"metadata": {"name": "jobs"}, "spec": {"clusterQueue": "gpus"}}, namespace="team-a")
        found.told(CHECKED.replace("QUEUE", "gpus"))
        yield found
        goes_as_the_page_says(found)


def made(here: Cluster, kind: str, item: Mapping[str, Any], *, namespace: str = "") -> None:
    """An object of Kueue's."""
    place = f"/namespaces/{namespace}" if namespace else ""
    body = {"apiVersion": KUEUE.removeprefix("/apis/"), "kind": kind, **item}
    here.api.must("POST", f"{KUEUE}{place}/{kind.lower()}s", body)


def goes_as_the_page_says(here: Cluster) -> None:
    """The check out of the queue, then the release: nothing stays but the namespace, which was there before."""
    here.told(UNCHECKED.replace("QUEUE", "gpus"))
    here.told("helm uninstall peakgate --namespace peakgate --wait && kubectl delete namespace peakgate")
    assert [line for line in here.objects() if "peakgate" in line] == []


@pytest.fixture
def here(shared: Cluster) -> Cluster:
    """With both replicas alive, whatever a test before did to them."""
    shared.node.paused.clear()
    wait_until(lambda: all(each.is_ready() for each in replicas(shared)), "both replicas are ready")
    wait_until(lambda: leader(shared) is not None, "one of them leads")
    return shared


def replicas(here: Cluster) -> list[RunningPod]:
    """The controller's pods."""
    found = here.node.of("kueue")
    assert len(found) == 2
    return found


def leader(here: Cluster) -> RunningPod | None:
    """The replica that the Lease names, while its process lives."""
    holder = here.api.must("GET", LEASE).get("spec", {}).get("holderIdentity")
    alive = (each for each in replicas(here) if each.process is not None and each.process.poll() is None)
    return next((each for each in alive if each.pod["metadata"]["name"] == holder), None)


def queued(here: Cluster, name: str, job: Mapping[str, Any]) -> None:
    """A workload, and what Kueue writes when it has reserved quota."""
    workload = a_workload(name, dict(job))
    body = {name: value for name, value in workload.items() if name != "status"}
    body["metadata"] = {"name": name}
    body["spec"] = workload["spec"] | {"queueName": "jobs"}
    made(here, "Workload", body, namespace="team-a")
    moment = workload["status"]["admissionChecks"][0]["lastTransitionTime"]
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": moment}
    status = workload["status"] | {"conditions": [reserved]}
    here.api.must("PATCH", f"{WORKLOADS}/{name}/status", {"status": status}, content_type=MERGE_PATCH)


def state(here: Cluster, name: str) -> dict[str, Any]:
    """The check's state on a workload."""
    (found,) = here.api.must("GET", f"{WORKLOADS}/{name}")["status"]["admissionChecks"]
    return dict(found)


def decided(here: Cluster, name: str, seconds: float = 20.0) -> dict[str, Any]:
    """The state that the controller sets."""
    wait_until(lambda: state(here, name)["state"] != "Pending", f"{name} is judged", seconds)
    return state(here, name)


def test_it_says_ready_rejected_and_retry(here: Cluster) -> None:
    """On the flavor that was chosen, in a form that Kueue's own schema takes; while the service is away, later."""
    check = here.api.must("GET", f"{KUEUE}/admissionchecks/peakgate")
    assert is_true(check, "Active")
    queued(here, "fits", SMALL)
    fits = decided(here, "fits")
    assert (fits["state"], fits["podSetUpdates"][0]["name"]) == ("Ready", "main")
    assert fits["podSetUpdates"][0]["annotations"]["peakgate.io/prediction"].startswith("predictions/")
    queued(here, "too-large", LARGE)
    rejected = decided(here, "too-large")
    assert rejected["state"] == "Rejected"
    assert "h100-80gb" in rejected["message"]
    wrong = {"status": {"admissionChecks": [rejected | {"state": "Nope"}]}}
    assert here.api.call("PATCH", f"{WORKLOADS}/too-large/status", wrong, content_type=MERGE_PATCH)[0] == 422  # the schema bites
    here.told("kubectl --namespace=peakgate scale deployment/peakgate-server --replicas=0")
    wait_until(lambda: here.node.of("server") == [], "the service is away")
    queued(here, "asks-again", SMALL)
    again = decided(here, "asks-again", 60.0)
    assert (again["state"], again["requeueAfterSeconds"]) == ("Retry", 60)
    here.told("kubectl --namespace=peakgate scale deployment/peakgate-server --replicas=1")
    here.told("kubectl --namespace=peakgate rollout status deployment/peakgate-server")


def test_another_replica_takes_over(here: Cluster) -> None:
    """The one that leads dies without a word: its Lease ends, and the other judges what came meanwhile."""
    here.node.paused.add("kueue")
    first = leader(here)
    assert first is not None
    assert first.process is not None
    first.process.send_signal(signal.SIGKILL)
    queued(here, "meanwhile", SMALL)
    assert decided(here, "meanwhile", TAKE_OVER_SECONDS)["state"] == "Ready"
    second = leader(here)
    assert second is not None
    assert second is not first


def test_what_waits_for_a_dead_controller_is_let_go(here: Cluster) -> None:
    """By the page's two ways out, with the rights of whoever runs them."""
    here.node.paused.add("kueue")
    for each in replicas(here):
        assert each.process is not None
        each.process.send_signal(signal.SIGKILL)
        each.process.wait()
    queued(here, "stuck", LARGE)
    time.sleep(TAKE_OVER_SECONDS / 2)
    assert state(here, "stuck")["state"] == "Pending"
    done = peakgate("kueue", "release", "--cluster-queue", "gpus", "--reason", "it is down", KUBECONFIG=str(here.kubeconfig))
    assert done.status == 0, done.err
    assert "team-a/stuck" in done.out
    assert state(here, "stuck")["state"] == "Ready"
    assert "released by hand (it is down)" in state(here, "stuck")["message"]


def test_its_account_may_do_what_it_does_and_nothing_else(here: Cluster, tmp_path: Path) -> None:
    """By its own token, with the options that the chart gives it."""
    (container,) = here.api.must("GET", "/apis/apps/v1/namespaces/peakgate/deployments/peakgate-kueue")["spec"]["template"]["spec"][
        "containers"
    ]
    want = wanted(PERMISSIONS, *container["args"])
    queued(here, "rights", SMALL)
    assert decided(here, "rights")["state"] == "Ready"
    assert refused(here, "peakgate-kueue") == []
    assert {right for right in asked_for(here, "peakgate-kueue") if right[1]} <= {right[:3] for right in want}
    assert granted(here, "peakgate-kueue", tmp_path) == want
