"""What stated versions change: defaults, kernels, the context, pins of a framework."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, at, number, rows
from tests.unit.memory.builders import a_job, a_plan, job_of

from peakgate.memory.change import with_changes
from peakgate.memory.defaults import DEFAULTS
from peakgate.memory.earlier import EARLIER, KERNELS, earlier_kernels, earlier_of, versions_of
from peakgate.memory.job import Framework, Job
from peakgate.memory.library import KERNELS as ALL_KERNELS
from peakgate.memory.pipeline import stages
from peakgate.memory.predict import predict
from peakgate.memory.profiles import profile_name
from peakgate.memory.saved_bytes import saved_bytes_per_layer
from peakgate.memory.step import walk

BERT = [row for row in rows("published_jobs") if str(at(row, "id")).startswith("hf-bertL-v100-")]

OF_ITS_DATE = {"framework.torch": "1.10", "framework.version": "4.15", "framework.cuda": "11.2"}
"""The page prints 11 January 2022 and CUDA 11.2: torch 1.11 came in March, transformers 4.16 at the end of the month."""


def test_each_row_changes_a_default_that_exists_and_says_why() -> None:
    """A field of the table of defaults, a value of its own, a source."""
    known = {row.field for row in DEFAULTS}
    assert all(row.default.field in known and row.default.source and row.default.value for row in EARLIER)


def test_a_catalogue_names_the_versions() -> None:
    """No two rows of the list read alike."""
    names = [(row.named.framework, row.named.field) for row in EARLIER]
    assert len(names) == len(set(names))
    assert ("* (torch < 2.0)", "optimizer.set_to_none") in names
    assert ("litgpt (litgpt, later versions)", "framework.bitsandbytes") in names


@pytest.mark.parametrize(
    ("framework", "stated", "field", "want"),
    [
        ("torch", Framework(torch="1.13.1"), "optimizer.set_to_none", "false"),
        ("torch", Framework(torch="2.0"), "optimizer.set_to_none", None),
        ("torch", Framework(), "optimizer.set_to_none", None),
        ("huggingface", Framework(torch="2.6"), "optimizer.implementation", "foreach"),
        ("huggingface", Framework(torch="2.8"), "optimizer.implementation", None),
        ("huggingface", Framework(torch="2.1", version="4.20"), "optimizer.implementation", "for-loop"),
        ("huggingface", Framework(version="4.57.6"), "checkpointing.reentrant", "true"),
        ("litgpt", Framework(version="0.3.0"), "framework.bitsandbytes", "0.42.0"),
        ("litgpt", Framework(version="0.5.13"), "framework.bitsandbytes", "0.44"),
        ("torchtune", Framework(version="0.3.0"), "framework.bitsandbytes", None),
    ],
)
def test_a_stated_version_decides(framework: str, stated: Framework, field: str, want: str | None) -> None:
    """The first row whose version has not come yet; today's without a stated version."""
    found = earlier_of(framework, field, versions_of(framework, stated))
    assert (found.value if found else None) == want


def test_an_earlier_default_is_an_assumption_with_its_source() -> None:
    """The answer names the value that the version brought, and why."""
    found = predict(a_job({"framework.torch": "1.10"})).assumptions
    (line,) = [each for each in found if each.startswith("optimizer.set_to_none")]
    assert "false" in line
    assert "before 2.0" in line


def test_a_softmax_kept_its_input() -> None:
    """Before torch 1.11: one more matrix of scores a layer; the table's kernels exist."""
    renames = earlier_kernels({"torch": (1, 10)})
    assert earlier_kernels({"torch": (1, 11)}) == ()
    assert {old for _, _, pairs in KERNELS for old in pairs.values()} <= set(ALL_KERNELS)
    plan = a_plan({"attention.implementation": "eager", "precision.recipe": "fp32"})
    dims = plan.architecture.dims
    scores = 4 * plan.micro_batch * dims["a"] * plan.sequence**2
    assert saved_bytes_per_layer(replace(plan, earlier_kernels=renames)) - saved_bytes_per_layer(plan) == scores


def test_gradients_that_stay_are_there_in_the_next_forward_pass() -> None:
    """With torch before 2.0 the forward pass of the steady state begins with all gradients."""
    now, then = (a_plan({"framework.torch": version}) for version in ("2.9", "1.13"))
    (stage,) = stages(now.degrees, now.architecture.dims["L"], 1)
    assert not walk(now, stage).highs["forward"].by.get("gradients")
    assert walk(then, stage).highs["forward"].by["gradients"] > 0


@pytest.mark.parametrize("row", BERT, ids=lambda row: str(at(row, "id")))
def test_a_page_of_2022_is_met_with_the_versions_of_its_date(row: Json) -> None:
    """BERT-large on a V100, all of the card that the driver shows: 6 % by ratio, 3 % by a replay; 14 to 37 % under without versions."""
    job: Job = with_changes(job_of(at(row, "job")), OF_ITS_DATE.items())
    measured = number(row, "outcome.peak_bytes")
    assert predict(job).device_bytes == pytest.approx(measured, rel=0.06)
    assert predict(job, exact=True).device_bytes == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize(
    ("version", "block", "want"),
    [(None, "llama", "lit-gpt"), (None, "gemma", "litgpt"), (None, "qwen2", "litgpt"), ("0.3", "llama", "litgpt"), (None, "", "lit-gpt")],
)
def test_a_model_that_scripts_did_not_know_means_the_package(version: str | None, block: str, want: str) -> None:
    """Lit-GPT of 2023 had no Gemma; whoever trains it runs LitGPT."""
    assert profile_name("litgpt", version, block) == want
