"""Answers for people: everything that matters is there, with its unit, and nothing is markup."""

from __future__ import annotations

import io
import re
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.unit.client.service import GB, an_answer

from peakgate.client.errors import InputError
from peakgate.client.options import Output
from peakgate.client.output import human_console
from peakgate.client.render.advice import print_advice
from peakgate.client.render.answer import print_answer, print_error, print_line
from peakgate.client.render.explanation import print_explanation
from peakgate.client.render.jobs import print_jobs
from peakgate.client.render.page import page, write_page
from peakgate.client.render.text import visible
from peakgate.client.render.timeline import timeline_chart
from peakgate.client.render.units import bar, count, gb, gb_and_gib, step_time
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_pb2 import Peak, PredictResponse, Suggestion, TimelinePoint, Verdict
from peakgate.v1.prediction_service_pb2 import PredictionSummary, Shortfall, SuggestResponse

OTHER_SPACES = [chr(n) for n in range(sys.maxunicode) if unicodedata.category(chr(n)) in ("Zs", "Cn", "Co")]
"""What `str.isprintable` refuses and a terminal shows as a space or a box."""


def a_console() -> tuple[Console, io.StringIO]:
    """A console that writes into memory, as wide as a pipe's."""
    text = io.StringIO()
    return Console(file=text, width=160, highlight=False), text


def shown(answer: PredictResponse, *, brief: bool = False) -> str:
    """The readable block of an answer."""
    console, text = a_console()
    print_answer(console, "job.yaml", answer, brief=brief)
    return text.getvalue()


def advised(advice: SuggestResponse) -> str:
    """The readable block of an advice."""
    console, text = a_console()
    print_advice(console, "job.yaml", advice)
    return text.getvalue()


@pytest.mark.parametrize(
    "want",
    [
        "REJECT  job.yaml",
        "activations: 91.8 GB of 116.1 GB",
        "117.0 GB (109.0 GiB)",
        "usable of h100-80gb",
        "holds in 95% of jobs",
        "the first that does not fit is forward",
        "24 layers",
        "FlashAttention",
        "attention.implementation: flash",
        "fits",
        "10 % faster",
        "a warning",
        "optimizer.name is adamw",
        "PEAKGATE_PREDICTION",
    ],
)
def test_the_block_says_what_matters(want: str) -> None:
    """Verdict, reason, both units, the card, phases, ledger, fix, its price, warnings and assumptions."""
    assert want in shown(an_answer())


def test_a_brief_block_has_no_ledger() -> None:
    """--brief is verdict and peaks, and the name under which the answer is stored."""
    text = shown(an_answer(), brief=True)
    assert "Stored as predictions/abc" in text
    assert "117.0 GB" in text
    assert "24 layers" not in text


def test_a_reason_is_wrapped_on_a_terminal_and_one_line_in_a_pipe() -> None:
    """A person reads it within the width of the window; a script searches in it."""
    reason = "a long reason, word after word, " * 8
    text = io.StringIO()
    print_answer(Console(file=text, width=60, force_terminal=True, no_color=True, highlight=False), "job.yaml", an_answer(reason=reason))
    lines = [line for line in text.getvalue().splitlines() if "word after word" in line]
    assert len(lines) > 1
    assert max(map(len, lines)) <= 60
    assert any(reason.strip() in line for line in shown(an_answer(reason=reason)).splitlines())


def test_text_of_the_service_is_not_markup() -> None:
    """Brackets in a reason or an item are shown, not obeyed."""
    answer = an_answer(reason="[red]x[/red] [/]")
    assert "[red]x[/red] [/]" in shown(answer)


def test_without_a_terminal_there_are_no_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """A log or a pipe gets plain text."""
    print_answer(human_console(Output.table), "job.yaml", an_answer())
    assert "\x1b" not in capsys.readouterr().out


def test_json_moves_the_block_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """With JSON on standard output, people read standard error."""
    print_answer(human_console(Output.jsonl), "job.yaml", an_answer())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "REJECT" in captured.err


def test_an_empty_answer_can_be_shown() -> None:
    """An answer with nothing but a verdict has a block too."""
    assert "0.0 GB" in shown(PredictResponse(verdict=Verdict.VERDICT_ADMIT, peak=Peak()))


def test_an_error_names_its_fields() -> None:
    """Every bad field stands on a line of its own."""
    console, text = a_console()
    print_error(console, "line 3", InputError("no job", fields=[("gpus", "did you mean gpu?"), ("model", "is missing")]))
    assert text.getvalue().splitlines()[1:] == ["            gpus did you mean gpu?", "            model is missing"]


def test_an_error_says_nothing_twice() -> None:
    """A message that only joins the fields gives way to their number; one that says something else stays."""
    fields = [("gpus", "did you mean gpu?"), ("model", "is missing")]
    console, text = a_console()
    print_error(console, "job", InputError("gpus: did you mean gpu?; model: is missing", fields=fields))
    print_error(console, "job", InputError("the file is odd", fields=fields))
    assert text.getvalue().count("is missing") == 2
    assert "2 bad fields" in text.getvalue()
    assert "the file is odd" in text.getvalue()


def test_control_characters_are_spelled_out() -> None:
    """A job's name cannot clear the screen, nor turn the order of letters; letters of any language stay."""
    nasty = "a\x1b[2J\u202eb\rc é 字"
    want = "a\\x1b[2J\\u202eb\\rc é 字"
    console, text = a_console()
    print_answer(console, nasty, an_answer(reason=nasty, prediction=nasty))
    print_explanation(console, nasty, an_answer(warnings=[nasty]))
    print_line(console, nasty, an_answer())
    print_error(console, nasty, InputError(nasty, fields=[(nasty, nasty)]))
    print_jobs(console, [PredictionSummary(prediction="predictions/1", job_name=nasty, state=nasty)])
    print_advice(console, nasty, SuggestResponse(prediction=an_answer(), smallest_gpu=nasty, solved_field=nasty))
    html = page(nasty, an_answer(reason=nasty))
    for shown_text in (text.getvalue(), html):
        assert not {"\x1b", "\u202e", "\r"} & set(shown_text)
        assert want in shown_text


@given(st.text())
def test_nothing_that_is_shown_moves_the_cursor(text: str) -> None:
    """Whatever the text, what is shown can be printed and encoded."""
    assert visible(text).isprintable() or set(visible(text)) & set(OTHER_SPACES)
    visible(text).encode()


def test_an_explanation_adds_the_step_and_the_rank() -> None:
    """The timeline is drawn and the worst rank is explained."""
    answer = an_answer()
    answer.rank.pipeline_stage, answer.rank.reason = 1, "it holds the logits"
    console, text = a_console()
    print_explanation(console, "job.yaml", answer)
    assert "|forward" in text.getvalue()
    assert "pipeline stage 1. it holds the logits" in text.getvalue()


def test_advice_names_its_limits() -> None:
    """The largest micro-batch, the smallest card and the solved field are said; none is said as none."""
    console, text = a_console()
    advice = SuggestResponse(prediction=an_answer(), largest_micro_batch_size=5, solved_field="batch.sequence_length", solved_value=900)
    advice.solved_limit = "largest"
    print_advice(console, "job.yaml", advice)
    assert "fits as the job is: 5" in text.getvalue()
    assert "slice for the job as it is: none" in text.getvalue()
    assert "on offer" not in text.getvalue()
    assert "Share of the card" not in text.getvalue()
    assert "batch.sequence_length: the largest value that fits is 900" in text.getvalue()
    advice.solved_value, advice.solved_limit = 0, ""
    print_advice(console, "job.yaml", advice)
    assert "batch.sequence_length: no value makes the job fit" in text.getvalue()


def test_a_solved_number_may_be_zero_or_a_fraction() -> None:
    """Which extreme it is says whether there is one at all."""
    advice = SuggestResponse(prediction=an_answer(), solved_field="dropout.hidden", solved_limit="largest")
    assert "dropout.hidden: the largest value that fits is 0" in advised(advice)
    advice.solved_number = 0.35
    assert "the largest value that fits is 0.35" in advised(advice)


def test_advice_names_cards_shares_and_notes() -> None:
    """The cheapest card on offer, the share in the words of both schedulers, and what is left free."""
    advice = SuggestResponse(prediction=an_answer(), cheapest_gpu="l4-24gb", memory_fraction=0.3, notes=["60.0 GB stay free"])
    text = advised(advice)
    for want in ("on offer for the job as it is: l4-24gb", "0.30 (gpu-fraction), 30 (gpumem-percentage)", "60.0 GB stay free"):
        assert want in text


def test_a_shortfall_names_what_is_missing_and_the_closest_plan() -> None:
    """Bytes, the largest part, the plan, how many were looked at; a plan that does not fit says by how much."""
    closest = Suggestion(title="ZeRO-3", bound_bytes=90 * GB, headroom_bytes=-6 * GB)
    advice = SuggestResponse(prediction=an_answer(), plans=1234)
    advice.shortfall.CopyFrom(Shortfall(bytes=6 * GB, category="logits", item="logits and loss", closest=closest))
    text = advised(advice)
    for want in ("closest of 1,234 plans is 6.0 GB too large", "logits and loss (logits)", "ZeRO-3", "does not fit by 6.0 GB"):
        assert want in text


def test_a_front_is_a_table_of_memory_and_time() -> None:
    """Only where it was asked for."""
    whole = Suggestion(title="as it is", bound_bytes=50 * GB, headroom_bytes=-9 * GB, relative_step_time=1.0)
    front = [whole, Suggestion(title="full", bound_bytes=GB, headroom_bytes=40 * GB)]
    text = advised(SuggestResponse(prediction=an_answer(), pareto=front))
    assert re.search(r"50.0 GB +-9.0 GB +as fast +as it is *\n +1.0 GB +40.0 GB +not estimated +full", text)
    assert "no other plan beats" not in advised(SuggestResponse(prediction=an_answer()))


def test_a_suggestion_says_its_room_and_what_it_takes() -> None:
    """Bytes to spare, a condition that nobody checked, and what it alters."""
    suggestion = Suggestion(title="offload", bound_bytes=50 * GB, fits=True, headroom_bytes=34 * GB, alters="numerics")
    suggestion.conditions.append("a node has 12 GB of RAM to spare")
    text = advised(SuggestResponse(prediction=an_answer(), suggestions=[suggestion]))
    for want in ("50.0 GB, fits with 34.0 GB to spare, step time not estimated", "if a node has 12 GB", "alters numerics"):
        assert want in text


class _Tags(HTMLParser):
    """Notes what a page would load, and whether its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> _Tags:
    """The page as its reader sees it."""
    tags = _Tags()
    tags.feed(html)
    return tags


def test_the_page_stands_alone(tmp_path: Path) -> None:
    """It is well formed, loads nothing, and says verdict, ledger and fix."""
    write_page(tmp_path / "page.html", "job.yaml", an_answer())
    tags = parsed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert tags.open == []
    assert tags.loads == []
    for want in ("REJECT", "24 layers", "FlashAttention", "117.0 GB (109.0 GiB)"):
        assert want in tags.text


def test_the_page_escapes_what_it_was_given() -> None:
    """A job's name or a reason cannot become a script."""
    html = page("<script>x</script>", an_answer(reason="<img src=x>"))
    assert "<script>" not in html
    assert parsed(html).loads == []


def test_a_page_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    """The folder does not exist: one clear error."""
    with pytest.raises(InputError, match="No such file"):
        write_page(tmp_path / "nowhere/page.html", "x", an_answer())


def points(*gigabytes: int) -> list[TimelinePoint]:
    """A timeline of these sizes; the second half is the backward pass."""
    half = len(gigabytes) // 2
    return [TimelinePoint(phase="backward" if n >= half else "forward", allocated_bytes=size * GB) for n, size in enumerate(gigabytes)]


def test_a_chart_keeps_a_short_peak() -> None:
    """One high moment among hundreds is still the top of the chart."""
    sizes = [1] * 500
    sizes[333] = 80
    top = timeline_chart(points(*sizes))[0]
    assert "█" in top
    assert "80.0 GB" in top


def test_a_chart_names_the_phases() -> None:
    """The last row marks where each phase begins; a short step is stretched to the chart's width."""
    assert timeline_chart(points(*range(1, 60)))[-1].split("|")[1:] == [f"{'forward':<35}", "backward"]


def test_no_points_no_chart() -> None:
    """An answer without a timeline draws nothing."""
    assert timeline_chart([]) == []


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=300), st.integers(1, 100), st.integers(1, 12))
def test_a_chart_never_passes_its_size(sizes: list[int], width: int, height: int) -> None:
    """Whatever the timeline, the chart has its rows and its width (a note beside the first and the last row apart)."""
    chart = timeline_chart(points(*sizes), width=width, height=height)
    assert len(chart) == height + 1
    assert all(len(row) <= width for row in chart[1:-2])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (gb(116_080_000_000), "116.1 GB"),
        (gb(5_000_000), "5.0 MB"),
        (gb(16_384), "16.4 kB"),
        (gb(0), "0.0 GB"),
        (gb_and_gib(2**30), "1.1 GB (1.0 GiB)"),
        (count(1_311_528_960), "1.31 billion"),
        (count(12_000_000), "12.0 million"),
        (count(999), "999"),
        (step_time(1.33), "33 % slower"),
        (step_time(0.9), "10 % faster"),
        (step_time(1.001), "as fast"),
        (step_time(0.0), "not estimated"),
        (bar(0.5, 4), "██"),
        (bar(2.0, 3), "███"),
        (bar(0.03125, 4), "▏"),
    ],
)
def test_units(text: str, want: str) -> None:
    """Sizes carry their unit; ratios are said as a person says them."""
    assert text == want


def test_changes_are_written_as_yaml() -> None:
    """A change can be pasted into the document: true, 4, a list."""
    suggestion = Suggestion(title="x")
    suggestion.changes["framework.compile"].bool_value = True
    suggestion.changes["batch.micro_batch_size"].number_value = 4
    suggestion.changes["framework.fused_kernels"].list_value.extend(["rms_norm", "swiglu"])
    text = shown(an_answer(suggestions=[suggestion]))
    pasted = "\n".join(line.strip() for line in text.splitlines() if re.match(r" +[a-z_]+\.[a-z_.]+: ", line))
    job = parse_job({"model": {"preset": "gpt2"}, "batch": {"micro_batch_size": 8}} | yaml.safe_load(pasted))
    assert (job.framework.compile, job.batch.micro_batch_size, [*job.framework.fused_kernels]) == (True, 4, ["rms_norm", "swiglu"])
