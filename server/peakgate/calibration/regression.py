"""One level's share of the residual: a ridge regression on (1, A, S) that grows row by row, with Huber's weights.

The estimate is θ = M⁻¹v with M = M₀ + Σ w·xxᵀ and v = Σ w·r·x, where M₀ is the precision of the prior (Hoerl and Kennard, Technometrics
12, 1970), and w = min(1, 2/|z|)/s² bounds the pull of one row (Huber, Annals of Mathematical Statistics 35, 1964).
"""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.calibration.prior import STANDARD_DEVIATIONS
from peakgate.calibration.subject import Features

HUBER_SCORES = 2.0
FORGOTTEN = 0.1
"""Part of the certainty that is left after an alarm."""

PRECISION = tuple(1 / deviation**2 for deviation in STANDARD_DEVIATIONS)
Symmetric = tuple[float, float, float, float, float, float]
"""m00 m01 m02 m11 m12 m22 of a symmetric matrix."""
Vector = tuple[float, float, float]


class Regression:
    """θ of one node. `certainty` multiplies the prior's precision."""

    __slots__ = ("_certainty", "_m", "_v", "theta")

    def __init__(self, *, certainty: float, m: Sequence[float] | None = None, v: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self._certainty = certainty
        self._m: Symmetric = _symmetric(m) if m is not None else self._prior()
        self._v: Vector = (v[0], v[1], v[2])
        self.theta = solve(self._m, self._v)

    def at(self, x: Features) -> float:
        """Its share of the residual in GB."""
        return dot(self.theta, x)

    def learn(self, x: Features, residual: float, weight: float) -> float:
        """Takes a row: what the levels above left over, in GB. Returns what this level leaves over."""
        full = residual + self.at(x)
        m, (_, a, s) = self._m, x
        self._m = (
            m[0] + weight,
            m[1] + weight * a,
            m[2] + weight * s,
            m[3] + weight * a * a,
            m[4] + weight * a * s,
            m[5] + weight * s * s,
        )
        self._v = (self._v[0] + weight * full, self._v[1] + weight * full * a, self._v[2] + weight * full * s)
        self.theta = solve(self._m, self._v)
        return full - self.at(x)

    def forget(self, kept: float = FORGOTTEN) -> None:
        """Keeps the estimate and gives up most of its certainty, so that new rows move it fast."""
        prior = self._prior()
        self._m = _symmetric([kept * (now - first) + first for now, first in zip(self._m, prior, strict=True)])
        m, t = self._m, self.theta
        self._v = (
            m[0] * t[0] + m[1] * t[1] + m[2] * t[2],
            m[1] * t[0] + m[3] * t[1] + m[4] * t[2],
            m[2] * t[0] + m[4] * t[1] + m[5] * t[2],
        )
        self.theta = solve(self._m, self._v)  # again, for what a restart makes of the state to be the same to the last bit

    def state(self) -> list[float]:
        """The nine numbers that `Regression(m=…[:6], v=…[6:])` takes."""
        return [*self._m, *self._v]

    def _prior(self) -> Symmetric:
        one, a, s = (precision * self._certainty for precision in PRECISION)
        return (one, 0.0, 0.0, a, 0.0, s)


def dot(one: Vector, other: Vector) -> float:
    """Scalar product."""
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def solve(m: Symmetric, v: Vector) -> Vector:
    """m⁻¹v of a positive definite matrix, by its adjugate."""
    a, b, c, d, e, f = m
    c00, c01, c02 = d * f - e * e, c * e - b * f, b * e - c * d
    c11, c12, c22 = a * f - c * c, b * c - a * e, a * d - b * b
    determinant = a * c00 + b * c01 + c * c02
    return (
        (c00 * v[0] + c01 * v[1] + c02 * v[2]) / determinant,
        (c01 * v[0] + c11 * v[1] + c12 * v[2]) / determinant,
        (c02 * v[0] + c12 * v[1] + c22 * v[2]) / determinant,
    )


def _symmetric(values: Sequence[float]) -> Symmetric:
    a, b, c, d, e, f = values
    return (a, b, c, d, e, f)
