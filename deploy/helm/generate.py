"""Makes what stands twice: the chart's copies of rules and dashboards, the kustomize base out of the chart, and the chart's page.

A chart can read no file outside itself, and kustomize none above a base. `python deploy/helm/generate.py [FOLDER]` writes below deploy/, or
below FOLDER for a comparison.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parent.parent
CHART = DEPLOY / "helm/peakgate"
COPIED = ("prometheus/recording.yml", "prometheus/alerting.yml", "prometheus/kueue.yml", "grafana/*.json")
# Which of the chart's template folders makes which file of kustomize, and the values that differ from the chart's own.
RENDERED = {
    "base/server.yaml": ("server", {"database.persistence.enabled": "true"}),
    "base/webhook.yaml": ("webhook", {}),
    "components/agent/agent.yaml": ("agent", {}),
    "components/kueue/kueue.yaml": ("kueue", {"kueue.enabled": "true"}),
    "components/monitoring/monitors.yaml": (
        "monitoring/monitors",
        {"monitoring.enabled": "true", "kueue.enabled": "false", "agent.enabled": "false"},
    ),
    "components/monitoring-agent/monitor.yaml": ("monitoring/pods", {"monitoring.enabled": "true"}),
    "components/monitoring-kueue/monitor.yaml": (
        "monitoring/pods",
        {"monitoring.enabled": "true", "agent.enabled": "false", "kueue.enabled": "true"},
    ),
    "components/monitoring-kueue/rules.yaml": ("monitoring/kueue", {"monitoring.enabled": "true", "kueue.enabled": "true"}),
    "components/postgresql/disruption.yaml": ("server/disruption", {"database.existingSecret": "peakgate-database"}),
    "components/monitoring/rules.yaml": ("monitoring/rules", {"monitoring.enabled": "true"}),
}
RELEASE = NAMESPACE = "peakgate"
HEADER = "# Made from the chart by deploy/helm/generate.py; change the chart.\n"
# What only Helm looks at.
OWN_TO_HELM = re.compile(r"^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)
VALUE = re.compile(r"^(?P<indent> *)(?P<name>\w+):(?: (?P<default>.+))?$")
SOURCE = re.compile(r"\A# Source: peakgate/templates/(\S+)\n")


def helm() -> str:
    """The program, beside this Python or on the path."""
    found = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
    if found is None:
        raise SystemExit("generate: helm is missing: run `make dev`")
    return found


def helm_template(*options: str) -> str:
    """The chart's objects."""
    command = [helm(), "template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--no-hooks", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rendered(folder: str, values: dict[str, str]) -> str:
    """The chart's objects of one template folder, without what is Helm's own."""
    text = helm_template(*(f"--set={name}={value}" for name, value in values.items()))
    documents = [part.lstrip("\n") for part in re.split(r"^---$", text, flags=re.MULTILINE) if part.strip()]
    kept = [SOURCE.sub("", part) for part in documents if (found := SOURCE.match(part)) and found[1].startswith(folder)]
    return HEADER + "---\n" + "---\n".join(OWN_TO_HELM.sub("", part) for part in kept)


def value_rows(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, default, meaning) of every value; the meaning is the comment above it, that above a group that of its first."""
    above: list[str] = []
    comment = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment = f"{comment} {line.lstrip(' #')}".strip()
        elif found := VALUE.match(line):
            above = [*above[: len(found["indent"]) // 2], found["name"]]
            if found["default"]:
                yield ".".join(above), found["default"], comment
                comment = ""
        else:
            comment = ""


def right_rows() -> Iterator[tuple[str, str, str, str]]:
    """(component, verbs, resources, where) of every rule of every role, with all that the example for Kueue switches on."""
    for role in yaml.safe_load_all(helm_template(f"--values={DEPLOY / 'helm/examples/kueue.yaml'}")):
        for rule in role["rules"] if role and role["kind"] in {"ClusterRole", "Role"} else ():
            (group,) = rule["apiGroups"]
            resources = ", ".join(f"`{resource}.{group}`" if group else f"`{resource}`" for resource in rule["resources"])
            names = ", ".join(f"`{name}`" for name in rule.get("resourceNames", ())) or "all"
            where = names if role["kind"] == "ClusterRole" else f"{names}, in its namespace"
            yield role["metadata"]["labels"]["app.kubernetes.io/component"], ", ".join(rule["verbs"]), resources, where


def chart_page() -> str:
    """The chart's README: a table of its values and one of the rights that it gives."""
    rows = "".join(
        f"| `{name}` | `{default}` | {meaning} |\n" for name, default, meaning in value_rows((CHART / "values.yaml").read_text())
    )
    rights = "".join(f"| {who} | {verbs} | {resources} | {where} |\n" for who, verbs, resources, where in right_rows())
    head = "# The chart peakgate\n\nHow to install it: [deploy](../../README.md). This page is made from the chart by `make gen`.\n\n"
    said = "What each may ask of the API server with everything switched on; a right is given only with the value that needs it.\n\n"
    return (
        f"{head}## Values\n\n| value | default | meaning |\n|---|---|---|\n{rows}\n"
        f"## Rights\n\n{said}| who | may | what | which |\n|---|---|---|---|\n{rights}"
    )


def main(target: Path) -> None:
    """Writes every file."""
    files = target / "helm/peakgate/files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    for pattern in COPIED:
        for path in sorted(DEPLOY.glob(pattern)):
            shutil.copyfile(path, files / path.name)
    (files.parent / "README.md").write_text(chart_page())
    for name, (folder, values) in RENDERED.items():
        path = target / "kustomize" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(folder, values))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEPLOY)
