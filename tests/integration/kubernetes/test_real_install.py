"""The ten minutes of deploy/README.md, word by word, on a real cluster: install, see, remove without a trace; with Helm and without.

Collected when PEAKGATE_KUBE_APISERVER names a kube-apiserver; a kube-controller-manager lies beside it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bench.programs import ROOT
from tests.integration.cli import peakgate
from tests.integration.kubernetes.real_cluster import Cluster, cluster

from peakgate.hooks.kubernetes.permissions import CERTIFICATES, NODES, PERMISSIONS, READS

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

PAGE = (ROOT / "deploy/README.md").read_text()
TEN_MINUTES = PAGE.split("## Kubernetes: ten minutes\n")[1].split("\n### ")[0]
FENCED = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", TEN_MINUTES, re.MULTILINE | re.DOTALL)
SCRIPTS = [text for language, text in FENCED if language == "sh"]
SHOWN = [text for language, text in FENCED if not language]
JOB = "examples/kubernetes/does-not-fit.yaml"
OVERLAY = "deploy/kustomize/overlays/warn-one-namespace"
IDENTIFIER = re.compile(r"\b[0-9a-f]{32}\b")
ACCOUNT = "system:serviceaccount:peakgate:peakgate-webhook"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all: each test leaves it as it was, which is what the tests are about."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def comparable(text: str) -> list[str]:
    """The lines without the names of predictions, and without that of the change, which is there when it was found in time."""
    return [IDENTIFIER.sub("ID", line.strip()) for line in text.splitlines() if " change " not in line and " change:" not in line]


def gone(here: Cluster, before: set[str], seconds: float = 60.0) -> None:
    """What was there before is there, and nothing else."""
    deadline = time.monotonic() + seconds
    while (left := here.objects() ^ before) and time.monotonic() < deadline:
        time.sleep(1)
    assert sorted(left) == []


def test_the_ten_minutes(here: Cluster, tmp_path: Path) -> None:
    """Each command of the page does what the page says, and the last leaves nothing."""
    image, install, remove = SCRIPTS
    (shown,) = SHOWN
    assert "docker build" in image  # of no use here: the node runs the program itself
    before = here.objects()
    here.told(install)
    assert comparable(here.told(f"kubectl apply --dry-run=server -f {JOB}"))[:-1] == comparable(shown)[1:-1]
    (stored,) = shown_identifiers(here.told(f"kubectl apply -f {JOB}"), want=comparable(shown)[1:])
    (server,) = here.node.of("server")
    target = f"{server.address}:{server.port('grpc')}"
    assert "optimizer" in peakgate("explain", stored, "--server", target).out
    rights_are_what_the_code_asks_for(here, tmp_path)
    here.told("helm upgrade peakgate ./deploy/helm/peakgate --namespace peakgate --wait --reuse-values")
    here.told(f"kubectl delete -f {JOB}")
    assert "too few" in here.told(f"kubectl apply -f {JOB}")  # an upgrade keeps the authority that the webhook has told
    assert "No resources found" in here.told(remove).splitlines()[-1]
    gone(here, before)


def shown_identifiers(text: str, *, want: list[str]) -> list[str]:
    """The predictions that the lines name, which are the lines of the page otherwise."""
    assert comparable(text) == want
    return IDENTIFIER.findall(text)


def rights_are_what_the_code_asks_for(here: Cluster, tmp_path: Path) -> None:
    """The account's own token may do what permissions.py lists and nothing else, and nothing that it asked for was refused."""
    (first, *_) = here.node.of("webhook")
    mine = rules_of(here, here.told("kubectl --namespace=peakgate create token peakgate-webhook").strip(), tmp_path)
    nobody = rules_of(here, here.told("kubectl --namespace=peakgate create token default").strip(), tmp_path)
    want = {
        (row.group, row.resource, verb, row.named)
        for row in PERMISSIONS
        if row.part in (READS, NODES, CERTIFICATES) and row.resource != "configmaps"
        for verb in row.verbs
    }
    assert mine - nobody == want
    asked = [event for event in here.api.audit() if event["user"]["username"] == ACCOUNT]
    assert len(asked) > 0
    assert [event["requestURI"] for event in asked if event["responseStatus"]["code"] == 403] == []
    assert "error" not in first.log


def rules_of(here: Cluster, token: str, tmp_path: Path) -> set[tuple[str, str, str, bool]]:
    """(group, resource, verb, only by name) of all that a token may do in peakgate's namespace."""
    config = here.api.kubeconfig(tmp_path / "account.kubeconfig", token=token)
    body = '{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "peakgate"}}'
    done = here.shell(f"kubectl create --output=json -f - <<< '{body}'", kubeconfig=config)
    assert done.returncode == 0, done.stdout
    found: Any = json.loads(done.stdout)["status"]["resourceRules"]
    return {
        (group, resource, verb, bool(rule.get("resourceNames")))
        for rule in found
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
