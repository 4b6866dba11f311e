"""The bars of `bounds.yaml` by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

BOUNDS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "bounds.yaml").read_text())


def bar(name: str) -> float:
    """The limit of a figure."""
    return float(BOUNDS[name]["bar"])


def suite_bar(name: str) -> float:
    """The limit with the room that the suite gives it, on a machine that does other things as well."""
    return bar(name) * float(BOUNDS["suite_factor"])
