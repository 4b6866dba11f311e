"""Lists of stored predictions and of tries, for people."""

from __future__ import annotations

import io

from rich.console import Console
from tests.unit.client.service import GB
from tests.unit.client.test_render import a_console

from peakgate.client.render.jobs import print_jobs, print_tries
from peakgate.v1.prediction_pb2 import Peak
from peakgate.v1.prediction_service_pb2 import PredictionSummary, Try


def test_a_narrow_terminal_shortens_no_name_of_a_prediction() -> None:
    """It is what one copies; the terminal wraps the line instead."""
    text = io.StringIO()
    name = "predictions/" + "0123456789abcdef" * 2
    rows = [PredictionSummary(prediction=name, job_name="a job with a long name " * 4, peak=Peak(device_bytes=GB), state="finished")]
    print_jobs(Console(file=text, width=40, force_terminal=True, highlight=False), rows)
    assert name in text.getvalue()
    assert "a job with a long name " * 4 in text.getvalue()


def test_jobs_compare_prediction_and_observation() -> None:
    """A job that was seen shows by how much it was off; one that was not says so."""
    console, text = a_console()
    seen = PredictionSummary(prediction="predictions/1", peak=Peak(device_bytes=100 * GB), observed_device_bytes=98 * GB, state="finished")
    print_jobs(console, [seen, PredictionSummary(prediction="predictions/2", peak=Peak(device_bytes=GB))])
    assert "-2.0%" in text.getvalue()
    assert "not seen" in text.getvalue()


def test_jobs_name_users_where_there_are_any() -> None:
    """A column of its own, which a laptop's list does not have."""
    for user, want in (("c/1000", True), ("", False)):
        console, text = a_console()
        print_jobs(console, [PredictionSummary(prediction="predictions/1", user=user)])
        assert ("user" in text.getvalue()) is want
        assert user in text.getvalue()


def test_tries_say_who_why_what_was_said_and_what_came_of_it() -> None:
    """One line each, with the rejection's figures."""
    console, text = a_console()
    peak = Peak(required_bytes=80 * GB, bound_bytes=86 * GB, oom_probability=0.12)
    line = PredictionSummary(prediction="predictions/1", user="c/1000", job_name="big", peak=peak, observed_device_bytes=79 * GB)
    line.capacity.usable_bytes = 85 * GB
    line.tried.reason, line.tried.outcome = "the [bold]paper[/] says it fits", "fitted"
    line.tried.create_time.FromSeconds(1_700_000_000)
    print_tries(console, [line, PredictionSummary(prediction="predictions/2", tried=Try(outcome="oom")), PredictionSummary()])
    row = next(each for each in text.getvalue().splitlines() if "predictions/1" in each)
    figures = ("80.0 GB", "86.0 GB", "85.0 GB", "12%", "79.0 GB")
    for want in ("c/1000", "2023-11-14 22:13 UTC", "big", *figures, "it fitted", "the [bold]paper[/]"):
        assert want in row
    assert "OOM" in next(each for each in text.getvalue().splitlines() if "predictions/2" in each)
    console, text = a_console()
    print_tries(console, [])
    assert text.getvalue() == "No rejected job was let run all the same yet.\n"


def test_a_list_of_tries_shows_no_control_characters() -> None:
    """A reason is another person's text."""
    console, text = a_console()
    print_tries(console, [PredictionSummary(user="a\x1b[2J", tried=Try(reason="b\u202ec", outcome="\r"))])
    assert not {"\x1b", "\u202e", "\r"} & set(text.getvalue())
