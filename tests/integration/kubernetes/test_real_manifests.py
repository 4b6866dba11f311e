"""A real API server takes what the chart and kustomize make, strictly: it knows what no schema does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.integration.kubernetes.charts import DEPLOY, VALUE_SETS, Manifest, kustomized, program, rendered
from tests.integration.kubernetes.real_api_server import ApiServer, api_server, operator_definitions

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With the operators' kinds and both namespaces: a dry run makes no namespace for what follows."""
    with api_server(tmp_path_factory.mktemp("api")) as found:
        found.define(*operator_definitions())
        for name in ("peakgate", "peakgate-agent"):
            found.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield found


def tried(api: ApiServer, folder: Path, objects: Sequence[Manifest]) -> subprocess.CompletedProcess[str]:
    """What kubectl says when it applies them without making them."""
    admin = api.kubeconfig(folder / "admin.kubeconfig", token="token-of-admin")
    (folder / "objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    options = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    command = [program("kubectl"), "apply", *options, "--filename", str(folder / "objects.json")]
    return subprocess.run(command, env=os.environ | {"KUBECONFIG": str(admin)}, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("values", ["", *VALUE_SETS])
def test_every_value_set_is_taken(api: ApiServer, tmp_path: Path, values: str) -> None:
    """Without a word of complaint, deprecations included."""
    objects = rendered(values)
    done = tried(api, tmp_path, objects)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(objects) > 10


def test_the_overlay_is_taken(api: ApiServer, tmp_path: Path) -> None:
    """As it stands."""
    done = tried(api, tmp_path, kustomized(DEPLOY / "kustomize/overlays/warn-one-namespace"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_is_refused(api: ApiServer, tmp_path: Path) -> None:
    """A selector that matches nothing: the check above can fail."""
    (deployment,) = (each for each in rendered("") if (each["kind"], each["metadata"]["name"]) == ("Deployment", "peakgate-webhook"))
    spec = {**deployment["spec"], "selector": {"matchLabels": {"app": "other"}}}
    done = tried(api, tmp_path, [{**deployment, "spec": spec}])
    assert done.returncode != 0
    assert "selector" in done.stderr
