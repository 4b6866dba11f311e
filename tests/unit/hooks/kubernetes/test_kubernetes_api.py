"""The webhook's calls of the API server, by the official client against a small one; they are those that it has rights for."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes_double import ApiDouble, api_double

from peakgate.hooks.kubernetes.certificate_keeping import SecretStore, WebhookConfigurations
from peakgate.hooks.kubernetes.kubernetes_api import KubernetesApi
from peakgate.hooks.kubernetes.own_certificates import ConflictError, OwnCertificates, StoreError
from peakgate.hooks.kubernetes.permissions import PERMISSIONS

SECRET = "/api/v1/namespaces/peakgate/secrets/webhook-tls"
VALIDATING, MUTATING = (
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/peakgate" for kind in ("validating", "mutating")
)
MAP = "/api/v1/namespaces/team-a/configmaps/settings"
RUNTIME = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch"
OWN_RUNTIME = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainingruntimes/torch"
NAMESPACE = "/api/v1/namespaces/team-a"
DEVICES = "/apis/resource.k8s.io/v1"
TEMPLATE, CLAIM = (f"{DEVICES}/namespaces/team-a/{kind}/gpus" for kind in ("resourceclaimtemplates", "resourceclaims"))
CLASS, SLICES = f"{DEVICES}/deviceclasses/large", f"{DEVICES}/resourceslices?limit=500"
VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch"}
NODES = "/api/v1/nodes?limit=500"


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    """With an empty Secret and two configurations, as the chart makes them."""
    with api_double() as found:
        found.objects[SECRET] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "webhook-tls", "resourceVersion": "1"}}
        for path in (VALIDATING, MUTATING):
            hooks = [{"name": f"{number}.peakgate.io", "clientConfig": {"service": {}}} for number in range(2)]
            found.objects[path] = {"metadata": {"name": "peakgate"}, "webhooks": hooks}
        for path in (MAP, RUNTIME, OWN_RUNTIME, NAMESPACE, TEMPLATE, CLAIM, CLASS):
            found.objects[path] = {"metadata": {"name": path.rpartition("/")[2]}}
        first = {"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "x y"}}
        found.objects |= {NODES: first, f"{NODES}&continue=x%20y": {"items": [{"metadata": {"name": "b"}}]}}
        found.objects[SLICES] = {"items": [{"metadata": {"name": "s"}}], "metadata": {}}
        yield found


def own(double: ApiDouble, folder: Path) -> OwnCertificates:
    """Certificates that this API server keeps."""
    store = SecretStore(double.calls(), "peakgate", "webhook-tls")
    announce = WebhookConfigurations(double.calls(), "peakgate").announce
    return OwnCertificates(store=store, folder=folder, hosts=["w.svc"], tell=lambda *_: None, announce=announce)


def test_certificates_are_kept_in_the_secret_and_announced(double: ApiDouble, tmp_path: Path) -> None:
    """Every webhook of both configurations gets the authority; a second replica reads what the first made, and patches nothing."""
    own(double, tmp_path / "a").ensure()
    data = double.objects[SECRET]["data"]
    for path in (VALIDATING, MUTATING):
        assert [each["clientConfig"]["caBundle"] for each in double.objects[path]["webhooks"]] == [data["ca.crt"]] * 2
    double.asked.clear()
    own(double, tmp_path / "b").ensure()
    assert {method for method, _ in double.asked} == {"GET"}
    assert (tmp_path / "b" / "tls.crt").read_bytes() == base64.b64decode(data["tls.crt"])


def test_a_configuration_that_is_not_there_is_left_out(double: ApiDouble, tmp_path: Path) -> None:
    """Without a mutating webhook; without any it says that nobody was told."""
    del double.objects[MUTATING]
    assert own(double, tmp_path).ensure()
    assert double.objects[VALIDATING]["webhooks"][0]["clientConfig"]["caBundle"]
    del double.objects[VALIDATING]
    assert not own(double, tmp_path).ensure()


def test_who_writes_late_is_told(double: ApiDouble) -> None:
    """By the resource's version, which the second writer has read before the first one wrote."""
    first, second = (SecretStore(double.calls(), "peakgate", "webhook-tls") for _ in range(2))
    first.read()
    second.read()
    first.write({"ca.crt": b"1"})
    with pytest.raises(ConflictError):
        second.write({"ca.crt": b"2"})


@pytest.mark.parametrize("path", [SECRET, VALIDATING])
def test_a_right_that_is_missing_is_told(double: ApiDouble, tmp_path: Path, path: str) -> None:
    """With the object and the API server's word."""
    double.forbidden.add(path)
    with pytest.raises(StoreError, match="403 Forbidden"):
        own(double, tmp_path).ensure()


def test_what_may_not_be_read_is_not_there(double: ApiDouble) -> None:
    """A review does without it."""
    api = KubernetesApi(double.calls())
    assert api.config_map("team-a", "settings") is not None
    assert api.config_map("team-a", "none") is None
    double.forbidden.add(MAP)
    assert api.config_map("team-a", "settings") is None
    double.port = 1
    assert KubernetesApi(double.calls()).namespace("team-a") is None


@pytest.mark.parametrize(
    "name", ["../../kube-system/configmaps/settings", "..", "a/b", "a?watch=1", "settings#x", "%2e%2e", "Settings", ""]
)
def test_what_is_no_name_is_not_asked_for(double: ApiDouble, name: str) -> None:
    """An object of a kind of its own may name anything, and nobody but us has looked at it before."""
    api = KubernetesApi(double.calls())
    assert api.config_map("team-a", name) is api.config_map(name, "settings") is api.device_class(name) is None
    assert api.claim("team-a", "ResourceClaim", name) is api.runtime("team-a", "TrainingRuntime", name) is api.namespace(name) is None
    assert double.asked == []


def test_every_call_is_permitted_and_every_permission_is_used(double: ApiDouble, tmp_path: Path) -> None:
    """permissions.py lists what is called, to the verb."""
    own(double, tmp_path).ensure()
    api = KubernetesApi(double.calls())
    assert api.config_map("team-a", "settings")
    assert api.runtime("", "ClusterTrainingRuntime", "torch")
    assert api.runtime("team-a", "TrainingRuntime", "torch")
    assert api.namespace("team-a")
    assert api.claim("team-a", "ResourceClaimTemplate", "gpus")
    assert api.claim("team-a", "ResourceClaim", "gpus")
    assert api.device_class("large")
    assert api.nodes() is not None
    assert api.slices() is not None
    assert {_right(method, path) for method, path in double.asked} == {
        (each.group, each.resource, verb) for each in PERMISSIONS for verb in each.verbs
    }


def test_nodes_are_listed_page_by_page(double: ApiDouble) -> None:
    """All of them, or none when a page is missing."""
    api = KubernetesApi(double.calls())
    nodes = api.nodes()
    assert nodes is not None
    assert [each["metadata"]["name"] for each in nodes] == ["a", "b"]  # type: ignore[index]  # objects of the API
    double.forbidden.add(f"{NODES}&continue=x%20y")
    assert api.nodes() is None


def _right(method: str, path: str) -> tuple[str, str, str]:
    """Group, resource and verb of a call (Kubernetes API, "Resource URIs")."""
    for prefix, group, resource in ((NODES, "", "nodes"), (SLICES, "resource.k8s.io", "resourceslices")):
        if path.startswith(prefix):
            return group, resource, "list"
    match = re.fullmatch(r"/(?:api|apis/([^/]+))/[^/]+/(?:namespaces/[^/]+/(?=[^/]+/))?([^/]+)/[^/]+", path)
    assert match is not None
    return match[1] or "", match[2], VERBS[method]
