"""What a service account may do by its own token, and what it did, as a real API server knows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.real_cluster import Cluster
from tests.integration.kubernetes.rights import Right

REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "peakgate"}}
REVIEWS = "selfsubjectrulesreviews"
FORBIDDEN = 403


def granted(here: Cluster, account: str, folder: Path) -> set[Right]:
    """(group, resource, verb, only by name) of what an account may do beyond one that nobody gave a right."""
    return _rights(here, account, folder) - _rights(here, "default", folder)


def refused(here: Cluster, account: str, *, since: int = 0) -> list[str]:
    """What it asked for and was not allowed, from a line of the audit log on: what runs while its rights are taken away is refused too."""
    return [event["requestURI"] for event in _events(here, account, since) if event["responseStatus"]["code"] == FORBIDDEN]


def asked_for(here: Cluster, account: str) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of all that it asked for; a subresource behind a slash."""
    found = set()
    for event in _events(here, account):
        if (target := event.get("objectRef")) is not None:
            resource = "/".join(part for part in (target["resource"], target.get("subresource")) if part)
            found.add((target.get("apiGroup", ""), resource, event["verb"]))
    assert found
    return found


def _events(here: Cluster, account: str, since: int = 0) -> list[dict[str, Any]]:
    """All that it asked for but what is asked here in its name."""
    name = f"system:serviceaccount:peakgate:{account}"
    theirs = (event for event in here.api.audit()[since:] if event["user"].get("username") == name)
    return [event for event in theirs if event.get("objectRef", {}).get("resource") != REVIEWS]


def _rights(here: Cluster, account: str, folder: Path) -> set[Right]:
    token = here.told(f"kubectl --namespace=peakgate create token {account}").strip()
    own = here.api.kubeconfig(folder / f"{account}.kubeconfig", token=token)
    done = here.shell(f"kubectl create --validate=false --output=json -f - <<< '{json.dumps(REVIEW)}'", kubeconfig=own)
    assert done.returncode == 0, done.stdout
    return {
        (group, resource, verb, bool(rule.get("resourceNames")))
        for rule in json.loads(done.stdout)["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
