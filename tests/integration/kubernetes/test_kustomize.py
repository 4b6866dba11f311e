"""The kustomize base: kubectl builds it with every component, and it is the chart's in all that counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.kubernetes.charts import DEPLOY, MINORS, Manifest, kustomized, named, rendered
from tests.integration.kubernetes.rules import faults
from tests.integration.kubernetes.schemas import schema_problems

KUSTOMIZE = DEPLOY / "kustomize"
CHOICES = (
    (),
    ("agent",),
    ("agent", "monitoring-agent"),
    ("kueue", "monitoring-kueue"),
    ("monitoring",),
    ("postgresql",),
    ("monitoring", "agent", "postgresql"),
)
# Only Helm's: on its objects, and with it on the pods.
OWN_TO_HELM = frozenset({"helm.sh/chart", "app.kubernetes.io/managed-by"})


def comparable(value: Any) -> Any:
    """An object without Helm's labels, its variables by name: a patch moves the one that it changes to the front."""
    if isinstance(value, dict):
        found = {name: comparable(each) for name, each in value.items() if name not in OWN_TO_HELM}
        return found | ({"env": sorted(found["env"], key=lambda each: str(each["name"]))} if "env" in found else {})
    return [comparable(each) for each in value] if isinstance(value, list) else value


def together(folder: Path, components: Sequence[str]) -> tuple[Manifest, ...]:
    """The base with components, as somebody's own kustomization beside a copy of ours would have it."""
    for name in ("base", "components"):
        if not (folder / name).exists():
            (folder / name).symlink_to(KUSTOMIZE / name)
    own = folder / "-".join(["own", *components])
    own.mkdir()
    document = {"resources": ["../base"], "components": [f"../components/{name}" for name in components]}
    (own / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return kustomized(own)


@pytest.mark.parametrize("components", CHOICES, ids="+".join)
def test_a_choice_of_components_is_sound(components: tuple[str, ...], tmp_path: Path) -> None:
    """Strict schemas of the newest minor, and every rule that the chart keeps."""
    objects = together(tmp_path, components)
    assert list(schema_problems(objects, MINORS[-1])) == []
    assert faults(objects) == []


def test_the_components_are_the_chart(tmp_path: Path) -> None:
    """All of them together are what the chart makes with the same values, object for object, but for namespace and migration."""
    components = sorted(path.name for path in (KUSTOMIZE / "components").iterdir())
    made = {(each["kind"], each["metadata"]["name"]): comparable(each) for each in together(tmp_path, components)}
    options = ("database.existingSecret=peakgate-database", "kueue.enabled=true", "monitoring.enabled=true", "monitoring.dashboards=false")
    objects = rendered("", *(f"--set={option}" for option in options), "--no-hooks", operators=())
    want = {(each["kind"], each["metadata"]["name"]): comparable(each) for each in objects}
    assert set(made) - set(want) == {("Namespace", "peakgate")}
    assert {key: made[key] for key in want} == want


@pytest.mark.parametrize("minor", MINORS)
def test_the_overlay_warns_in_one_namespace(minor: str) -> None:
    """The overlay to copy: valid on each minor, sound, and its webhook looks at one namespace."""
    objects = kustomized(KUSTOMIZE / "overlays/warn-one-namespace")
    assert list(schema_problems(objects, minor)) == []
    assert faults(objects) == []
    (webhook,) = named(objects, "ValidatingWebhookConfiguration", "peakgate")["webhooks"]
    first = webhook["namespaceSelector"]["matchExpressions"][0]
    assert first == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a"]}
