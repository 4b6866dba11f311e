"""From a request to its reply: what is asked, what is written down, and that nothing of it can fail."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.hooks.slurm.building import TRAINING, Answering, a_suggestion, an_answer, rejected, serving

from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.slurm.attached import attach
from peakgate.hooks.slurm.cards import Cards
from peakgate.hooks.slurm.finding import Finder
from peakgate.hooks.slurm.gate import Gate
from peakgate.hooks.slurm.gate_metrics import GateMetrics
from peakgate.hooks.slurm.journal import Journal, decisions
from peakgate.hooks.slurm.rules import Rules
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse
from peakgate.v1.training_job_pb2 import TrainingJob


@dataclass
class Running:
    """A gate with what it said and wrote."""

    gate: Gate
    service: Answering
    journal: Path
    told: list[str] = field(default_factory=list)

    async def ask(self, **request: object) -> list[str]:
        """The lines of the reply to a submission."""
        whole = {"v": 1, "op": "submit", "uid": 1001, "cluster": "c", "fields": FIELDS, "script": TRAINING, **request}
        return (await self.gate.answer(json.dumps(whole).encode() + b"\n")).decode().splitlines()

    def decisions(self) -> list[dict[str, object]]:
        """What was written down."""
        self.gate.journal.close()
        return list(decisions(self.journal)) if self.journal.exists() else []

    def metric(self, name: str, **labels: str) -> float | None:
        """A metric as it stands."""
        return self.gate.metrics.registry.get_sample_value(name, labels)


FIELDS = {"tres_per_node": "gres:gpu:h100:1", "partition": "gpu", "account": "physics", "name": "pretrain", "user_name": "ann"}


@asynccontextmanager
async def running(tmp_path: Path, service: Answering | None = None, rules: Mapping[str, object] | None = None) -> AsyncIterator[Running]:
    """A gate under these rules."""
    answering = service if service is not None else Answering()
    told: list[str] = []

    def tell(level: str, text: str) -> None:
        told.append(f"{level}: {text}")

    async with serving(answering) as target:
        there = Service(target)
        judges = Judges(service=there, deadline_seconds=5.0)
        gate = Gate(
            rules=lambda: Rules.model_validate({"mode": "enforce", **(rules or {})}),
            cards=Cards,
            judges=judges,
            advisers=Advisers(judges=judges, wait_seconds=0.01),
            finder=Finder(judges=judges, tell=tell),
            journal=Journal(tmp_path / "journal", tell),
            metrics=GateMetrics(),
            tell=tell,
        )
        try:
            yield Running(gate, answering, tmp_path / "journal", told)
        finally:
            await gate.advisers.close()
            gate.finder.close()
            await there.channel.close()


async def test_a_job_is_judged_on_its_card_for_its_user(tmp_path: Path) -> None:
    """And written down with all that an operator asks for later."""
    async with running(tmp_path) as each:
        reply = await each.ask()
        (decision,) = each.decisions()
        asked = each.service.asked[0]
    assert (reply[0], reply[-1]) == ("ALLOW 0123abcd", "END")
    assert (asked.job.gpu.type, asked.job.gpu.count, asked.brief) == ("h100-80gb", 1, True)
    want = {
        "operation": "submit",
        "cluster": "c",
        "uid": 1001,
        "user": "ann",
        "account": "physics",
        "partition": "gpu",
        "job_name": "pretrain",
        "gpus": 1,
        "gpu_types": ["h100"],
        "card": "h100-80gb",
        "mode": "enforce",
        "verdict": "ADMIT",
        "prediction": "0123abcd",
        "outcome": "admitted",
        "checked": True,
        "by": "service",
        "bound_bytes": 60_000_000_000,
        "usable_bytes": 80_000_000_000,
    }
    assert {name: decision[name] for name in want} == want
    assert each.metric("peakgate_gate_decisions_total", mode="enforce", verdict="ADMIT", outcome="admitted") == 1
    assert each.metric("peakgate_gate_decision_seconds_count") == 1


async def test_whose_job_it_is_goes_with_the_question(tmp_path: Path) -> None:
    """Root may submit for others."""
    async with running(tmp_path) as each:
        await each.ask(uid=0, fields=FIELDS | {"user_id": 1002})
        request = each.service.asked[0]
        (decision,) = each.decisions()
    assert decision["uid"] == 1002
    assert request.user == "c/1002"


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"partition": "gpu"}, {}),
        ({"tres_per_node": "gres:shard:2"}, {}),
        (FIELDS, {"mode": "off"}),
        (FIELDS, {"exempt_accounts": ["physics"]}),
        (FIELDS, {"rules": [{"user": "ann", "mode": "off"}]}),
        (FIELDS, {"rules": [{"user": 1001, "mode": "off"}]}),
    ],
)
async def test_what_is_not_looked_at(tmp_path: Path, fields: dict[str, object], rules: dict[str, object]) -> None:
    """Neither asked about nor written down."""
    async with running(tmp_path, rules=rules) as each:
        assert await each.ask(fields=fields) == ["ALLOW -", "END"]
        assert (each.service.asked, each.decisions()) == ([], [])


async def test_a_job_that_is_no_training_is_written_down_as_unchecked(tmp_path: Path) -> None:
    """So that a site sees how many there are; the user hears nothing."""
    async with running(tmp_path) as each:
        assert await each.ask(script="#!/bin/sh\nnvidia-smi\n") == ["ALLOW -", "END"]
        (decision,) = each.decisions()
    assert (decision["checked"], decision["outcome"], decision["reason"]) == (False, "admitted", "")
    assert each.metric("peakgate_gate_unchecked_total", reason="no_training") == 1


async def test_a_refusal_is_counted(tmp_path: Path) -> None:
    """By its mode and verdict."""
    async with running(tmp_path, Answering(answer=lambda request: rejected())) as each:
        reply = await each.ask()
        (decision,) = each.decisions()
    assert (reply[0], decision["outcome"], decision["prediction"]) == ("DENY gres", "refused", "0123abcd")
    assert each.metric("peakgate_gate_decisions_total", mode="enforce", verdict="REJECT", outcome="refused") == 1


@pytest.mark.parametrize("line", [b"", b"rubbish\n", b'{"v": 9}\n', b"\xff\n"])
async def test_a_request_that_is_none_is_admitted_unchecked(tmp_path: Path, line: bytes) -> None:
    """The hook and the gate are of different releases: that is said."""
    async with running(tmp_path) as each:
        assert await each.gate.answer(line) == b"ALLOW unchecked\nEND\n"
    assert len(each.told) == 1
    assert each.metric("peakgate_gate_unchecked_total", reason="malformed") == 1


async def test_a_fault_of_our_own_is_admitted_unchecked(tmp_path: Path) -> None:
    """And said, with what it was."""
    async with running(tmp_path) as each:
        each.gate.cards = lambda: 1 // 0  # type: ignore[return-value, assignment]
        assert await each.ask() == ["ALLOW unchecked", "END"]
    assert each.told == ["error: fault in the gate, admitted unchecked: ZeroDivisionError: integer division or modulo by zero"]


async def test_what_takes_too_long_is_no_failure_of_the_gate(tmp_path: Path) -> None:
    """It answers within the hook's budget."""
    async with running(tmp_path, Answering(seconds=60)) as each:
        each.gate.judges.deadline_seconds = 0.1
        assert await each.ask() == ["ALLOW unchecked", "END"]
        (decision,) = each.decisions()
    assert (decision["checked"], decision["by"]) == (False, "nobody")
    assert each.metric("peakgate_gate_unchecked_total", reason="away") == 1


async def test_an_operator_may_change_any_job(tmp_path: Path) -> None:
    """root, and those who may ask; a submission of root's is another's job, and judged."""
    stored = {"predictions/aa": GetPredictionResponse()}
    stored["predictions/aa"].job.model.preset = "gpt2"
    service = Answering(answer=lambda request: rejected(), stored=stored)
    change = {"op": "modify", "fields": {"features": "x"}, "record": FIELDS | {"admin_comment": "peakgate=aa"}, "script": ""}
    async with running(tmp_path, service) as each:
        replies = [(await each.ask(uid=uid, **change))[0] for uid in (0, 1001)]
        submitted = (await each.ask(uid=0))[0]
    assert (replies, submitted) == (["ALLOW 0123abcd", "DENY gres"], "DENY gres")


async def test_a_host_that_answered_needs_no_second_question(tmp_path: Path) -> None:
    """The prediction of the submit host holds when its document was made for this request."""
    job = TrainingJob()
    job.model.preset, job.gpu.type, job.gpu.count, job.node.gpus = "gpt2", "h100-80gb", 1, 1
    service = Answering(stored={"predictions/aa": GetPredictionResponse(job=job, prediction=an_answer(prediction="predictions/aa"))})
    env = dict(attach(job, prediction="predictions/aa", script=TRAINING.encode()).environment())
    told = env | {"PEAKGATE_ATTACHED": env["PEAKGATE_ATTACHED"] + " told=1"}
    fields = FIELDS | {"min_nodes": 1, "max_nodes": 1}
    async with running(tmp_path, service) as each:
        assert [len(await each.ask(env=words, fields=fields)) for words in (env, told)] == [3, 2]
        same = (await each.ask(env=env, fields=fields))[0]
        other = (await each.ask(env=env, fields=fields | {"tres_per_node": "gres:gpu:a100-40:1"}))[0]
        by = [decision["by"] for decision in each.decisions()]
    assert (same, other, by) == ("ALLOW aa", "ALLOW 0123abcd", ["stored", "stored", "stored", "service"])
    assert [request.job.gpu.type for request in service.asked] == ["a100-40gb"]


async def test_what_the_host_judged_in_silence_is_told_in_the_scripts_own_words(tmp_path: Path) -> None:
    """Not in those of the document that it attached; where a script names a file, which is not read here, in those."""
    job = TrainingJob()
    job.model.preset, job.gpu.type, job.gpu.count, job.node.gpus = "gpt2", "h100-80gb", 1, 1
    answer = rejected(prediction="predictions/aa")
    answer.suggestions.append(a_suggestion())
    answer.suggestions[0].changes["batch.micro_batch_size"].number_value = 1
    service = Answering(stored={"predictions/aa": GetPredictionResponse(job=job, prediction=answer)})
    whole = TRAINING.replace("--micro-batch-size 1", "--micro-batch-size 8")
    partly = whole.replace("--bf16", "--bf16 --deepspeed --deepspeed_config /home/ann/ds.json")
    async with running(tmp_path, service) as each:
        for script, want in ((whole, "cheapest change: --micro-batch-size 1 (job script)"), (partly, "batch.micro_batch_size")):
            env = dict(attach(job, prediction="predictions/aa", script=script.encode()).environment())
            said = await each.ask(env=env, fields=FIELDS | {"min_nodes": 1, "max_nodes": 1}, script=script)
            assert want in said[2]
        told = env | {"PEAKGATE_ATTACHED": env["PEAKGATE_ATTACHED"] + " told=1"}
        assert len(await each.ask(env=told, fields=FIELDS | {"min_nodes": 1, "max_nodes": 1}, script=partly)) == 3
