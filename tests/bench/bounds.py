"""The bars of `bounds.yaml` by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

BOUNDS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "bounds.yaml").read_text())


def bar(name: str) -> float:
    """The limit of a figure."""
    return float(BOUNDS[name]["bar"])
