"""Makes what stands twice: the chart's copies of rules and dashboards, the kustomize base out of the chart, the page of the values.

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

DEPLOY = Path(__file__).parent.parent
CHART = DEPLOY / "helm/peakgate"
COPIED = ("prometheus/recording.yml", "prometheus/alerting.yml", "grafana/*.json")
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
    "components/postgresql/disruption.yaml": ("server/disruption", {"database.existingSecret": "peakgate-database"}),
    "components/monitoring/rules.yaml": ("monitoring/rules", {"monitoring.enabled": "true"}),
}
RELEASE = NAMESPACE = "peakgate"
HEADER = "# Made from the chart by deploy/helm/generate.py; change the chart.\n"
# What only Helm looks at.
OWN_TO_HELM = re.compile(r"^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)
VALUE = re.compile(r"^(?P<indent> *)(?P<name>[A-Za-z]+):(?: (?P<default>.+))?$")
SOURCE = re.compile(r"\A# Source: peakgate/templates/(\S+)\n")


def helm() -> str:
    """The program, beside this Python or on the path."""
    found = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
    if found is None:
        raise SystemExit("generate: helm is missing: run `make dev`")
    return found


def rendered(folder: str, values: dict[str, str]) -> str:
    """The chart's objects of one template folder, without what is Helm's own."""
    stated = [f"--set={name}={value}" for name, value in values.items()]
    command = [helm(), "template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--no-hooks", *stated]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    documents = [part.lstrip("\n") for part in re.split(r"^---$", text, flags=re.MULTILINE) if part.strip()]
    kept = [SOURCE.sub("", part) for part in documents if (found := SOURCE.match(part)) and found[1].startswith(folder)]
    return HEADER + "---\n" + "---\n".join(OWN_TO_HELM.sub("", part) for part in kept)


def value_rows(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, default, meaning) of every value; the meaning is the comment above it, or above what it is part of."""
    above: list[str] = []
    comment = ""
    meanings: dict[str, str] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment = f"{comment} {line.lstrip(' #')}".strip()
        elif found := VALUE.match(line):
            above = [*above[: len(found["indent"]) // 2], found["name"]]
            name = ".".join(above)
            meanings[name], comment = comment or meanings.get(".".join(above[:-1]), ""), ""
            if found["default"]:
                yield name, found["default"], meanings[name]
        else:
            comment = ""


def values_page() -> str:
    """The chart's README: one line and a table of its values."""
    rows = "".join(
        f"| `{name}` | `{default}` | {meaning} |\n" for name, default, meaning in value_rows((CHART / "values.yaml").read_text())
    )
    head = "# The chart peakgate\n\nHow to install it: [deploy](../../README.md). Made from `values.yaml` by `make gen`.\n\n"
    return f"{head}| value | default | meaning |\n|---|---|---|\n{rows}"


def main(target: Path) -> None:
    """Writes every file."""
    files = target / "helm/peakgate/files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    for pattern in COPIED:
        for path in sorted(DEPLOY.glob(pattern)):
            shutil.copyfile(path, files / path.name)
    (files.parent / "README.md").write_text(values_page())
    for name, (folder, values) in RENDERED.items():
        path = target / "kustomize" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(folder, values))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEPLOY)
