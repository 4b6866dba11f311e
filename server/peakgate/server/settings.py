"""Every setting of the service, read from PEAKGATE_* variables. The command line overrides single fields."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from peakgate.server.card_order import by_preference, by_price
from peakgate.server.learning import LearningRules
from peakgate.server.policy import CAREFUL_COVERAGE, DEFAULT_COVERAGE, DEFAULT_TRIES_PER_DAY, Policy, coverage_of_costs
from peakgate.server.retention import Retention
from peakgate.server.site_models import load_site_models
from peakgate.server.versions import HISTORY_DAYS


def default_database_url() -> str:
    """A SQLite file in the user's data folder, such as ~/.local/share/peakgate/peakgate.sqlite3."""
    path: Path = user_data_path("peakgate", appauthor=False) / "peakgate.sqlite3"
    return f"sqlite:///{path}"


LONGEST_DAYS = 36_500
"""A century: who wants to keep things for good says so, and no time that is stated leaves what a clock can count."""
LONGEST_HOURS, LONGEST_SECONDS = LONGEST_DAYS * 24, 86_400


class Settings(BaseSettings):
    """The service's settings. There is no authentication yet, so the default address is reachable from this host only."""

    model_config = SettingsConfigDict(env_prefix="PEAKGATE_", extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address that gRPC and HTTP listen on.")
    grpc_port: int = Field(default=50551, ge=0, le=65535, description="Port of gRPC; 0 takes a free one.")
    http_port: int = Field(default=9551, ge=0, le=65535, description="Port of HTTP; 0 takes a free one.")
    database_url: str = Field(default_factory=default_database_url, description="SQLAlchemy URL of SQLite or PostgreSQL.")
    coverage: float = Field(default=DEFAULT_COVERAGE, gt=0, lt=1, description="Probability with which the bound covers the need.")
    careful_coverage: float = Field(
        default=CAREFUL_COVERAGE, gt=0, lt=1, description="The same where the margin is unsure: few observations, a new version, a drift."
    )
    oom_cost: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="What a job costs that runs out of memory, instead of a coverage."
    )
    rejection_cost: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        validate_default=True,
        description="What a job costs that is rejected and would have fitted, in the same unit.",
    )
    tries_per_day: int = Field(
        default=DEFAULT_TRIES_PER_DAY, ge=0, le=1000, description="Rejected jobs that each user may run all the same in 24 hours; 0: none."
    )
    calibration_promotion: str = Field(
        default="auto", pattern="^(auto|manual)$", description="auto: a shadow that passes its trial becomes the active version; manual."
    )
    operator_reserve_bytes: int = Field(default=0, ge=0, description="Bytes that stay free on every card.")
    gpu_prices: str = Field(default="", description="Cards on offer with a price an hour: h100-80gb=2.5,h100-80gb/3g.40gb=1.1.")
    gpu_preference: str = Field(
        default="", description="Cards on offer, the preferred first, where there are no prices: l4-24gb,a100-40gb."
    )
    models: str = Field(default="", description="YAML file, or folder of them, with models of the site's own for the catalogue.")
    retention_hours: float = Field(default=24.0, gt=0, le=LONGEST_HOURS, description="Hours that a prediction is kept when no job uses it.")
    peaks_retention_days: float = Field(
        default=30.0, gt=0, le=LONGEST_DAYS, description="Days that peaks of an ended job are kept; what was made of them stays for good."
    )
    events_retention_days: float = Field(default=90.0, gt=0, le=LONGEST_DAYS, description="Days that starts and ends of jobs are kept.")
    calibration_history_days: float = Field(
        default=HISTORY_DAYS,
        gt=0,
        le=LONGEST_DAYS,
        description="Days that versions of the calibration are kept: daily ones, those of alarms and switches.",
    )
    quiet_seconds: float = Field(
        default=60.0, ge=0, le=LONGEST_SECONDS, description="Wait for another program of a job whose end nobody but agents told."
    )
    settle_seconds: float = Field(
        default=600.0, ge=0, le=LONGEST_SECONDS, description="Wait for the last peaks of a job whose other GPUs have ended."
    )
    audit_queue_rows: int = Field(default=10_000, ge=1, description="Predictions that may wait for the database.")
    cache_entries: int = Field(default=4096, ge=1, description="Answers kept in memory.")
    stop_grace_seconds: float = Field(default=10.0, ge=0, le=LONGEST_SECONDS, description="Time that running calls get at a stop.")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG INFO WARNING ERROR.")
    log_json: bool = Field(default=False, description="Log lines as JSON.")

    @field_validator("rejection_cost")
    @classmethod
    def _both_costs(cls, rejection_cost: float | None, info: ValidationInfo) -> float | None:
        if "oom_cost" not in info.data or "coverage" not in info.data:
            return rejection_cost  # that one is refused already
        oom_cost = info.data["oom_cost"]
        if (oom_cost is None) != (rejection_cost is None):
            raise ValueError("PEAKGATE_OOM_COST and PEAKGATE_REJECTION_COST are compared: state both or neither")
        if oom_cost is not None and rejection_cost is not None:
            coverage_of_costs(oom_cost, rejection_cost)
        return rejection_cost

    @model_validator(mode="after")
    def _costs_or_coverage(self) -> Settings:
        if self.oom_cost is not None and "coverage" in self.model_fields_set:
            raise ValueError("the costs say what PEAKGATE_COVERAGE says: leave the costs or the coverage out")
        return self

    @field_validator("gpu_prices")
    @classmethod
    def _known_prices(cls, text: str) -> str:
        by_price(text)
        return text

    @field_validator("gpu_preference")
    @classmethod
    def _known_preference(cls, text: str, info: ValidationInfo) -> str:
        if by_preference(text) and info.data.get("gpu_prices"):
            raise ValueError("PEAKGATE_GPU_PRICES orders the cards already: leave one of the two out")
        return text

    @field_validator("models")
    @classmethod
    def _readable_models(cls, place: str) -> str:
        load_site_models(place)
        return place

    def retention(self) -> Retention:
        """How long what agents report is kept."""
        return Retention(peaks_days=self.peaks_retention_days, events_days=self.events_retention_days)

    def learning(self) -> LearningRules:
        """What the margin's writer keeps to."""
        return LearningRules(
            settle_seconds=self.settle_seconds,
            quiet_seconds=self.quiet_seconds,
            history_days=self.calibration_history_days,
            promotes=self.calibration_promotion == "auto",
        )

    def policy(self) -> Policy:
        """The part of the settings that answers depend on."""
        costs = self.oom_cost, self.rejection_cost
        return Policy(
            coverage=self.coverage if costs[0] is None or costs[1] is None else coverage_of_costs(costs[0], costs[1]),
            careful_coverage=self.careful_coverage,
            operator_reserve_bytes=self.operator_reserve_bytes,
            gpu_order=by_price(self.gpu_prices) or by_preference(self.gpu_preference),
            tries_per_day=self.tries_per_day,
        )


def problems(error: ValidationError) -> str:
    """Every bad setting by its variable, in one line; what several say together names the first of them."""
    found = ((str(each["loc"][0]).upper() if each["loc"] else "OOM_COST", each["msg"]) for each in error.errors())
    return "; ".join(f"PEAKGATE_{name}: {message.removeprefix('Value error, ')}" for name, message in found)
