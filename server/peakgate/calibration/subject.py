"""A job as the calibration sees it: where it belongs, and the predicted figures that its residual may depend on."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.calibration.prior import GIGABYTE, scale

TEXTBOOK = "textbook"
"""The seeds' accounting leaves the runtime out: it has no residual to learn."""

Features = tuple[float, float, float]
"""1, activations and logits in GB, model states in GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The worst GPU of a job. Sizes in bytes.

    `framework` names the node of its framework (name, minor version, parallelism family), `group` the leaf below it (GPU model,
    framework, one node or several, expandable segments, compile). `version` stands for torch, CUDA, driver and NCCL: a change means that
    what was learned may no longer hold; empty is unknown. `user` is empty when it is unknown. `required_bytes` is the predicted need with
    its prior of the runtime, `runtime_bytes` that prior, `device_bytes` the predicted device peak; `card_bytes` 0 is an unknown card.
    """

    group: str
    framework: str
    version: str = ""
    user: str = ""
    card_bytes: int = 0
    required_bytes: int
    device_bytes: int
    runtime_bytes: int = 0
    activation_bytes: int = 0
    state_bytes: int = 0

    @property
    def features(self) -> Features:
        """What the residual is regressed on."""
        return 1.0, self.activation_bytes / GIGABYTE, self.state_bytes / GIGABYTE

    @property
    def counted(self) -> float:
        """GB that the memory model counts without its prior of the runtime."""
        return (self.required_bytes - self.runtime_bytes) / GIGABYTE

    @property
    def prior_residual(self) -> float:
        """GB of residual that are believed before anything was observed."""
        return self.runtime_bytes / GIGABYTE

    @property
    def scale(self) -> float:
        """Scale of the residual in GB."""
        return scale(self.activation_bytes / GIGABYTE)

    @property
    def card(self) -> float:
        """GB of the card; 0: unknown."""
        return self.card_bytes / GIGABYTE

    @property
    def is_textbook(self) -> bool:
        """Whether nothing is to be learned."""
        return self.framework == TEXTBOOK

    @property
    def levels(self) -> tuple[str, str]:
        """Names of its two nodes, the framework's first."""
        return levels_of(framework=self.framework, group=self.group)


def levels_of(*, framework: str, group: str) -> tuple[str, str]:
    """Names of the two nodes of a job, the framework's first."""
    return f"framework {framework}", f"group {group}"
