"""What deploy/README.md says of an install, word by word, on a real cluster: install, see, remove without a trace; with Helm and without.

Collected when PEAKGATE_KUBE_APISERVER names a kube-apiserver; a kube-controller-manager lies beside it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.programs import ROOT
from tests.integration.cli import peakgate
from tests.integration.kubernetes.real_api_server import wait_until
from tests.integration.kubernetes.real_cluster import Cluster, cluster
from tests.integration.kubernetes.real_rights import asked_for, granted, refused
from tests.integration.kubernetes.rights import wanted

from peakgate.hooks.kubernetes.permissions import CERTIFICATES, NODES, PERMISSIONS, READS

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

PAGE = (ROOT / "deploy/README.md").read_text()
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OVERLAY = "deploy/kustomize/overlays/warn-one-namespace"
JOB = "examples/kubernetes/does-not-fit.yaml"
IDENTIFIER = re.compile(r"\b[0-9a-f]{32}\b")
RIGHTS = {right for right in wanted(PERMISSIONS, READS, NODES, CERTIFICATES) if right[1] != "configmaps"}  # webhook.readConfigMaps is off


def section(title: str, language: str) -> list[str]:
    """What stands in fences of a language below a title of the page."""
    text = re.split(r"\n##", PAGE.split(f"{title}\n")[1])[0]
    return [found for named, found in FENCED.findall(text) if named == language]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def here(shared: Cluster) -> Iterator[Cluster]:
    """Without what a test that failed left behind; one that passed leaves nothing, which is what the tests are about."""
    yield shared
    shared.shell("helm uninstall peakgate --namespace peakgate --ignore-not-found")
    shared.shell(f"kubectl delete --ignore-not-found -k {OVERLAY}; kubectl delete --ignore-not-found namespace team-a peakgate")


def comparable(text: str) -> list[str]:
    """The lines without the names of predictions, and without that of the change, which is there when it was found in time."""
    return [IDENTIFIER.sub("ID", line.strip()) for line in text.splitlines() if " change " not in line and " change:" not in line]


def gone(here: Cluster, before: set[str]) -> None:
    """What was there before is there, and nothing else, within a minute: a namespace takes a while to go."""
    deadline = time.monotonic() + 60
    while (left := here.objects() ^ before) and time.monotonic() < deadline:
        time.sleep(1)
    assert sorted(left) == []


def shown() -> list[str]:
    """What the page shows below the command."""
    (text,) = section("## Kubernetes: ten minutes", "")
    return comparable(text)[1:]


def verdicts(here: Cluster, resource: str, *, since: int) -> set[str | None]:
    """What the audit log from a line on says of objects that were created in the one namespace: None where the webhook was not asked."""
    created = [each for each in here.api.audit()[since:] if each["verb"] == "create" and "dryRun" not in each["requestURI"]]
    targets = [(each, each.get("objectRef", {})) for each in created]
    ours = [each for each, target in targets if (target.get("namespace"), target.get("resource")) == ("team-a", resource)]
    return {each.get("annotations", {}).get("jobs.peakgate.io/verdict") for each in ours}


def test_the_ten_minutes(here: Cluster, tmp_path: Path) -> None:
    """Each command of the page does what the page says, and the last leaves nothing."""
    image, install, remove = section("## Kubernetes: ten minutes", "sh")
    assert "docker build" in image  # of no use here: the node runs the program itself
    before, since = here.objects(), len(here.api.audit())
    here.told(install)
    asked = comparable(here.told(f"kubectl apply --dry-run=server -f {JOB}"))
    assert asked == [shown()[0], "Warning: peakgate: admitted all the same", f"{shown()[-1]} (server dry run)"]
    told = here.told(f"kubectl apply -f {JOB}")
    assert comparable(told) == shown()
    (server,) = here.node.of("server")
    assert verdicts(here, "jobs", since=since) == {"reject"}
    wait_until(lambda: here.told("kubectl --namespace=team-a get pods --output=name") != "", "the controller of Jobs makes its pod")
    assert verdicts(here, "pods", since=since) == {None}  # a refusal there would reach nobody, so nobody is asked
    explained = peakgate("explain", *IDENTIFIER.findall(told), "--server", f"{server.address}:{server.port('grpc')}")
    assert "optimizer_states" in explained.out
    assert asked_for(here, "peakgate-webhook") <= {(group, resource, verb) for group, resource, verb, _ in RIGHTS}
    assert refused(here, "peakgate-webhook", since=since) == []
    assert granted(here, "peakgate-webhook", tmp_path) == RIGHTS
    here.told(remove)
    assert "No resources found" in here.told(remove.splitlines()[-1])
    gone(here, before)


def test_without_helm(here: Cluster, tmp_path: Path) -> None:
    """The overlay warns as the chart does, with the same rights, and goes as it came."""
    install, remove = section("### Without Helm", "sh")
    before, since = here.objects(), len(here.api.audit())
    here.told("kubectl create namespace team-a")
    here.told(install)
    assert comparable(here.told(f"kubectl apply -f {JOB}")) == shown()
    assert granted(here, "peakgate-webhook", tmp_path) == RIGHTS
    assert refused(here, "peakgate-webhook", since=since) == []
    here.told(remove)
    here.told("kubectl delete namespace team-a")
    gone(here, before)


def test_an_upgrade_and_a_way_out(here: Cluster) -> None:
    """An upgrade keeps the authority that the webhook has told; the configuration is taken away and brought back as the page says."""
    _, install, remove = section("## Kubernetes: ten minutes", "sh")
    before = here.objects()
    here.told(install)
    (upgrade,) = (line for line in install.splitlines() if "helm install" in line)
    again = install[install.index(upgrade) :].replace("helm install", "helm upgrade")
    here.told(again)
    assert "too few" in here.told(f"kubectl apply -f {JOB}")
    here.told(f"kubectl delete -f {JOB}; kubectl delete validatingwebhookconfiguration peakgate")
    assert "Warning" not in here.told(f"kubectl apply -f {JOB}")
    here.told(f"kubectl delete -f {JOB}")
    here.told(again)
    deadline = time.monotonic() + 30  # a quarter of a minute, as the page says, and then some
    while "too few" not in (told := here.told(f"kubectl apply --dry-run=server -f {JOB}")):
        assert time.monotonic() < deadline, told
        time.sleep(1)
    here.told(remove.replace("kubectl delete -f", "# "))
    gone(here, before)
