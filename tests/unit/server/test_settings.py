"""Settings from the environment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from peakgate.server.policy import Policy
from peakgate.server.settings import Settings, problems


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"PEAKGATE_{name.upper()}", raising=False)


def test_the_defaults_are_the_contracts() -> None:
    """Ports, coverage, and an address that only this host reaches: there is no authentication yet."""
    settings = Settings()
    assert (settings.grpc_port, settings.http_port, settings.host) == (50551, 9551, "127.0.0.1")
    assert settings.policy() == Policy(coverage=0.95, careful_coverage=0.99, operator_reserve_bytes=0)
    assert settings.database_url.startswith("sqlite:///")


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """PEAKGATE_ and the field's name."""
    monkeypatch.setenv("PEAKGATE_DATABASE_URL", "sqlite:////x/y")
    monkeypatch.setenv("PEAKGATE_COVERAGE", "0.99")
    assert Settings().database_url == "sqlite:////x/y"
    assert Settings().policy().coverage == 0.99


def test_a_bad_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coverage of 1 would need an infinite margin."""
    monkeypatch.setenv("PEAKGATE_COVERAGE", "1.0")
    with pytest.raises(ValidationError, match="coverage"):
        Settings()


@pytest.mark.parametrize("value", ["inf", "1e300", "nan", "-1"])
def test_no_time_leaves_the_clock(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every duration has an end: one without is refused by name, and is no traceback of a service that has begun."""
    durations = [name for name in Settings.model_fields if name.endswith(("_seconds", "_hours", "_days"))]
    assert len(durations) >= 7
    for name in durations:
        with monkeypatch.context() as changed:
            changed.setenv(f"PEAKGATE_{name.upper()}", value)
            with pytest.raises(ValidationError) as caught:
                Settings()
        assert name.upper() in problems(caught.value)


def test_the_unit_file_sets_what_exists_and_waits_long_enough() -> None:
    """A misspelled variable would be ignored in silence; a stop has two graces, for calls and for what waits to be written."""
    unit = (Path(__file__).parents[3] / "deploy" / "systemd" / "peakgate-server.service").read_text()
    names = set(re.findall(r"^Environment=PEAKGATE_(\w+)=", unit, re.MULTILINE))
    assert names
    assert {name.lower() for name in names} <= set(Settings.model_fields)
    stop_seconds = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert stop_seconds is not None
    assert int(stop_seconds[1]) > 2 * Settings().stop_grace_seconds


def test_models_of_the_site_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad file stops the service before it starts, by the setting's name."""
    path = tmp_path / "models.yaml"
    path.write_text("- name: acme\n")
    monkeypatch.setenv("PEAKGATE_MODELS", str(path))
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert problems(caught.value) == f"PEAKGATE_MODELS: {path}:1: model: has neither a transformer nor an hf_config: state one"


def test_prices_and_preferences_order_the_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either of them; both at once contradict each other."""
    monkeypatch.setenv("PEAKGATE_GPU_PREFERENCE", "h100-80gb,l4")
    assert Settings().policy().gpu_order == ("h100-80gb", "l4-24gb")
    monkeypatch.setenv("PEAKGATE_GPU_PRICES", "h100-80gb=2.5,l4=0.5")
    with pytest.raises(ValidationError, match="leave one of the two out"):
        Settings()
    monkeypatch.delenv("PEAKGATE_GPU_PREFERENCE")
    assert Settings().policy().gpu_order == ("l4-24gb", "h100-80gb")


def test_a_bad_card_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nearest name, in the line that ends the command."""
    monkeypatch.setenv("PEAKGATE_GPU_PRICES", "h100-80bg=2.5")
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert problems(caught.value).startswith("PEAKGATE_GPU_PRICES: unknown GPU 'h100-80bg'; did you mean h100-80gb")


def test_costs_stand_for_a_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nineteen to one is 95 %; tries are part of the policy too."""
    monkeypatch.setenv("PEAKGATE_OOM_COST", "38")
    monkeypatch.setenv("PEAKGATE_REJECTION_COST", "2")
    monkeypatch.setenv("PEAKGATE_TRIES_PER_DAY", "0")
    policy = Settings().policy()
    assert policy.coverage == pytest.approx(0.95)
    assert policy.tries_per_day == 0
    assert Settings.model_fields["tries_per_day"].default == Policy().tries_per_day


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({"OOM_COST": "5"}, "PEAKGATE_REJECTION_COST: PEAKGATE_OOM_COST and PEAKGATE_REJECTION_COST are compared: state both or neither"),
        ({"REJECTION_COST": "5"}, "PEAKGATE_REJECTION_COST: PEAKGATE_OOM_COST and PEAKGATE_REJECTION_COST are compared"),
        ({"OOM_COST": "5", "REJECTION_COST": "1", "COVERAGE": "0.9"}, "PEAKGATE_OOM_COST: the costs say what PEAKGATE_COVERAGE says"),
        ({"OOM_COST": "5", "REJECTION_COST": "0"}, "PEAKGATE_REJECTION_COST: Input should be greater than 0"),
        ({"OOM_COST": "-1", "REJECTION_COST": "1"}, "PEAKGATE_OOM_COST: Input should be greater than 0"),
        ({"OOM_COST": "nan", "REJECTION_COST": "1"}, "PEAKGATE_OOM_COST: Input should be"),
        ({"OOM_COST": "inf", "REJECTION_COST": "1"}, "PEAKGATE_OOM_COST: Input should be a finite number"),
        ({"OOM_COST": "1e300", "REJECTION_COST": "1e-300"}, "PEAKGATE_REJECTION_COST: the costs lie too far apart"),
        ({"TRIES_PER_DAY": "-1"}, "PEAKGATE_TRIES_PER_DAY: Input should be greater than or equal to 0"),
    ],
)
def test_costs_that_contradict_are_refused(variables: dict[str, str], want: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable, in one line; half a comparison, two policies at once, and what is no cost."""
    for name, value in variables.items():
        monkeypatch.setenv(f"PEAKGATE_{name}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert problems(caught.value).startswith(want)
