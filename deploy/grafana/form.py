"""What the tables of dashboards are made of: rows of panels with their queries. build.py gives them Grafana's form."""

from __future__ import annotations

from dataclasses import dataclass

RATE = "[$__rate_interval]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`queries`: (expression, legend). `shape`: series over time, one number, or a heat map of a histogram's buckets."""

    title: str
    look_for: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    shape: str = "series"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Rows of panels. `variables`: labels by which the reader may choose."""

    uid: str
    title: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]
    variables: tuple[str, ...] = ()


def by(labels: str, metric: str, matchers: str = "") -> str:
    """A counter's events a second, by labels."""
    return f"sum by ({labels}) (rate({metric}{matchers}{RATE}))"


def hourly(labels: str, metric: str, matchers: str = "") -> str:
    """A counter's events in an hour, by labels."""
    return f"sum by ({labels}) (increase({metric}{matchers}[1h]))"


def quantiles(
    metric: str, shares: tuple[float, ...], *, matchers: str = "", window: str = RATE, labels: str = ""
) -> tuple[tuple[str, str], ...]:
    """Quantiles of a histogram, by labels."""
    grouped = f"le, {labels}" if labels else "le"
    legend = " ".join(f"{{{{{label.strip()}}}}}" for label in labels.split(",") if label)
    return tuple(
        (f"histogram_quantile({share}, sum by ({grouped}) (rate({metric}_bucket{matchers}{window})))", f"p{share * 100:g} {legend}".strip())
        for share in shares
    )
