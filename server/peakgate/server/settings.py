"""Every setting of the service, read from PEAKGATE_* variables. The command line overrides single fields."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from peakgate.server.policy import DEFAULT_COVERAGE, Policy


def default_database_url() -> str:
    """A SQLite file in the user's data folder, such as ~/.local/share/peakgate/peakgate.sqlite3."""
    path: Path = user_data_path("peakgate", appauthor=False) / "peakgate.sqlite3"
    return f"sqlite:///{path}"


class Settings(BaseSettings):
    """The service's settings. There is no authentication yet, so the default address is reachable from this host only."""

    model_config = SettingsConfigDict(env_prefix="PEAKGATE_", extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address that gRPC and HTTP listen on.")
    grpc_port: int = Field(default=50551, ge=0, le=65535, description="Port of gRPC; 0 takes a free one.")
    http_port: int = Field(default=9551, ge=0, le=65535, description="Port of HTTP; 0 takes a free one.")
    database_url: str = Field(default_factory=default_database_url, description="SQLAlchemy URL of SQLite or PostgreSQL.")
    coverage: float = Field(default=DEFAULT_COVERAGE, gt=0, lt=1, description="Probability with which the bound covers the need.")
    operator_reserve_bytes: int = Field(default=0, ge=0, description="Bytes that stay free on every card.")
    retention_hours: float = Field(default=24.0, gt=0, description="Hours that a prediction is kept when no job uses it.")
    settle_seconds: float = Field(default=600.0, ge=0, description="Wait for the last peaks of a job whose other GPUs have ended.")
    audit_queue_rows: int = Field(default=10_000, ge=1, description="Predictions that may wait for the database.")
    cache_entries: int = Field(default=4096, ge=1, description="Answers kept in memory.")
    stop_grace_seconds: float = Field(default=10.0, ge=0, description="Time that running calls get at a stop.")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG INFO WARNING ERROR.")
    log_json: bool = Field(default=False, description="Log lines as JSON.")

    def policy(self) -> Policy:
        """The part of the settings that verdicts depend on."""
        return Policy(coverage=self.coverage, operator_reserve_bytes=self.operator_reserve_bytes)
