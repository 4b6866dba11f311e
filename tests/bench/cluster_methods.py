"""What is compared on a simulated cluster: the calibration, and fixed margins."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.bench.cluster_sim import FRAMEWORKS, Report, SimulatedJob

from peakgate.calibration import Calibrator, Observation, Subject
from peakgate.calibration.gate import USER_QUARANTINED

GB = 1e9


@dataclass(frozen=True, slots=True)
class FixedMargin:
    """A part of the card is kept free."""

    ratio: float

    def bound(self, job: SimulatedJob) -> float:
        """The same for every job of a card."""
        return job.predicted + self.ratio * job.card

    def learn(self, job: SimulatedJob, report: Report) -> None:
        """Never."""


@dataclass(slots=True)
class Learned:
    """The calibration at one coverage, or at two: `careful` where it says that it is unsure.

    `chances` are the probabilities of running out of memory that it gave, by job; `quarantined` counts rows of honest users that it did
    not learn from because of their user, `distrusted` the jobs at whose submission it did not trust itself.
    """

    alpha: float = 0.05
    careful: float | None = 0.01
    versions: bool = False
    prior_offset: float = 0.0
    calibrator: Calibrator = field(default_factory=Calibrator)
    ended: int = 0
    chances: dict[int, float] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    quarantined: int = 0
    distrusted: int = 0

    def bound(self, job: SimulatedJob) -> float:
        """By the policy's α."""
        snapshot, subject = self.calibrator.snapshot(), self.subject(job)
        unsure = self.careful is not None and snapshot.is_unsure(subject)
        alpha = self.careful if unsure and self.careful is not None else self.alpha
        bound = snapshot.trusted_bound(subject, coverage=1 - alpha)
        self.distrusted += bool(bound.distrust)
        self.chances[job.number] = snapshot.oom_probability(subject, usable_bytes=subject.card_bytes)
        return bound.bound_bytes / GB

    def learn(self, job: SimulatedJob, report: Report) -> None:
        """A row in the order of arrival."""
        self.ended += 1
        value = max(1, int(report.value * GB))
        observation = Observation(
            prediction=str(job.number),
            subject=self.subject(job),
            lower_bytes=value,
            upper_bytes=value if report.exact else None,
            finished_at=float(self.ended),
            has_statistics=report.told,
        )
        self.observations.append(observation)
        outcome = self.calibrator.learn(observation)
        self.quarantined += outcome.reason == USER_QUARANTINED and not job.attacker

    def subject(self, job: SimulatedJob) -> Subject:
        """The job as the service would describe it. Its own figures are needs, so its device peak is its requirement."""
        required = int((job.predicted + job.prior + self.prior_offset) * GB)
        return Subject(
            group=str(job.group),
            framework=FRAMEWORKS[job.framework],
            version=str(job.version) if self.versions else "",
            user=str(job.user),
            card_bytes=int(job.card * GB),
            required_bytes=required,
            device_bytes=required,
            runtime_bytes=int((job.prior + self.prior_offset) * GB),
            activation_bytes=int(job.activations * GB),
            state_bytes=int(job.states * GB),
        )
