"""From sbatch to a changed bound, on a real Slurm with real processes of the service, the gate and the agent."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.programs import PEAKGATE, ROOT, Program, environment
from tests.integration.slurm.cluster import Slurm, job_number
from tests.integration.slurm.gate import running_gate, use_hook
from tests.integration.slurm.joining import UUID, drop_ins, joined_cluster, until
from tests.integration.slurm.submit_host import FITS, TOO_LARGE, submit, use_service, with_launcher

from peakgate.client.connect import Client, connect
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse

STAMP = """
function slurm_job_submit(jd, part_list, uid) jd.admin_comment = "peakgate={name}" return slurm.SUCCESS end
function slurm_job_modify(jd, job_rec, part_list, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
SCENARIO = """driver 580.105.08
gpu 0 uuid={uuid} total=81559M reserved=480M name=NVIDIA_H100_80GB_HBM3
process 0 pid={pid} memory=0:520M,0.5:{mib}M,5:end
"""
SACCT = """JobID|JobIDRaw|Cluster|State|Start|End|NTasks|AllocTRES|TRESUsageInMax|TRESUsageInMaxNode|ExitCode|AdminComment
70|70|testcluster|FAILED|100|200||gres/gpu=1,node=1|||1:0|peakgate={name}
71|71|testcluster|COMPLETED|100|200||gres/gpu=1,node=1|||0:0|
"""
JOB = {"model": {"preset": "llama-3.1-8b"}, "batch": {"micro_batch_size": 1, "sequence_length": 2048}, "gpu": {"type": "h100-80gb"}}
ENFORCE = "mode: enforce\n"
AGENT = """
import json, sys
from pathlib import Path
from peakgate.agent.main import run
from peakgate.agent.options import Options
names, places = map(json.loads, sys.argv[1:])
sys.exit(run(Options(**names, **{name: Path(path) for name, path in places.items()}, helper_socket=None, kubelet_socket=None)))
"""


@pytest.fixture(scope="module")
def target(service: Program) -> str:
    """Where the service is."""
    return service.target


@pytest.fixture(scope="module")
def joined(target: str) -> Iterator[Slurm]:
    """A cluster that tells it how jobs end."""
    with joined_cluster(target) as slurm:
        use_service(slurm, target)
        yield slurm


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    """A client of the service."""
    with connect(target, predict_timeout_seconds=20) as opened:
        yield opened


def stamped(slurm: Slurm, client: Client) -> str:
    """A new prediction, which the controller stamps on what is submitted from now on."""
    prediction = client.predict(parse_job(JOB)).prediction
    slurm.job_submit(STAMP.format(name=prediction.removeprefix("predictions/")))
    return prediction


def state(client: Client, prediction: str) -> str:
    """What came of the prediction's job."""
    return stored(client, prediction).stored.state


def stored(client: Client, prediction: str) -> GetPredictionResponse:
    """The stored prediction."""
    return client.get_prediction(prediction)


def newest(client: Client) -> str:
    """The name of the prediction that was made last."""
    return next((each.prediction for each in client.list_predictions(limit=1)), "")


def test_the_prolog_says_which_job_holds_which_card_and_the_epilog_takes_it_back(joined: Slurm) -> None:
    """By the card's UUID, with the attempt and its user."""
    joined.job_submit(STAMP.format(name="ab12"))
    number = job_number(joined.sbatch("sleep 2\n", "--gres=gpu:h100:2"))
    until(lambda: len(drop_ins(joined)) == 2, "two files")
    until(lambda: all(each["prediction"] == "predictions/ab12" for each in drop_ins(joined).values()), "the stamp of the gate")
    assert drop_ins(joined)[UUID.format(0)] == {
        "cluster": "testcluster", "job": str(number), "restart": 0, "prediction": "predictions/ab12", "user": "nobody"
    }  # fmt: skip
    joined.wait(number)
    until(lambda: not drop_ins(joined), "no file")


def test_a_job_without_cards_leaves_no_file(joined: Slurm) -> None:
    """And its prolog costs next to nothing."""
    joined.wait(job_number(joined.sbatch("true\n")))
    assert drop_ins(joined) == {}


@pytest.mark.parametrize(("text", "want"), [("true\n", "finished"), ("exit 3\n", "failed"), ("kill -9 $$\n", "failed")])
def test_the_epilog_tells_how_a_job_ended(joined: Slurm, client: Client, text: str, want: str) -> None:
    """By the state that Slurm has, joined by the stamp of the gate."""
    prediction = stamped(joined, client)
    joined.wait(job_number(joined.sbatch(text, "--gpus=h100:1")))
    until(lambda: state(client, prediction) == want, want)


def test_a_cancelled_job_has_not_finished(joined: Slurm, client: Client) -> None:
    """Its exit code is that of one which has; only its state tells them apart."""
    prediction = stamped(joined, client)
    number = job_number(joined.sbatch("sleep 60\n", "--gpus=h100:1"))
    until(lambda: joined.job(number)["JobState"] == "RUNNING", "a running job")
    joined.run("scancel", str(number))
    joined.wait(number)
    until(lambda: state(client, prediction) == "cancelled", "cancelled")


def test_a_requeued_job_is_another_attempt_under_its_number(joined: Slurm, client: Client) -> None:
    """The first was cut off, the second finishes."""
    prediction = stamped(joined, client)
    number = job_number(joined.sbatch('[ -n "$SLURM_RESTART_COUNT" ] || sleep 60\n', "--gpus=h100:1", "--requeue"))
    until(lambda: joined.job(number)["JobState"] == "RUNNING", "a running job")
    joined.run("scontrol", "requeue", str(number), user="root")
    until(lambda: state(client, prediction) == "cancelled", "the end of the first attempt")
    until(lambda: joined.job(number)["JobState"] == "PENDING", "the second attempt")
    time.sleep(1.5)  # Slurm's times have whole seconds, and by itself it waits two minutes here
    joined.run("scontrol", "update", f"jobid={number}", "starttime=now", user="root")
    joined.wait(number)
    until(lambda: state(client, prediction) == "finished", "the end of the second attempt")


def test_a_site_without_an_epilog_reads_the_accounting(target: str, client: Client, tmp_path: Path) -> None:
    """One call for all jobs; what it says of those that it could not join it says in numbers, and a second call changes nothing."""
    prediction = client.predict(parse_job(JOB)).prediction
    accounting = tmp_path / "sacct.txt"
    accounting.write_text(SACCT.format(name=prediction.removeprefix("predictions/")))
    for _ in range(2):
        told = json.loads(_command("slurm", "sync", str(accounting), "--server", target, "--output", "json"))
        assert [(each["job"], each["event"], each["fate"]) for each in told] == [
            ("70", "failed", "stored"),
            ("71", "finished", "not joined"),
        ]
    assert state(client, prediction) == "failed"


def test_a_refusal_names_what_explains_it(joined: Slurm, target: str) -> None:
    """The id at the prompt is that of the stored prediction, whose whole answer the same user reads."""
    settings = {"PEAKGATE_SERVER": target, "PEAKGATE_MODE": "enforce"}
    done = submit(joined, "sbatch", "--gpus=h100:1", joined.script(TOO_LARGE), env=settings)
    assert (done.returncode, done.stdout) == (1, "")
    found = re.search(r"more: (peakgate explain [0-9a-f]{32})$", done.stderr.splitlines()[2])
    assert found, done.stderr
    assert "activations" in submit(joined, *found[1].split()[1:], env=settings).stdout


def test_a_test_only_submission_stores_nothing(joined: Slurm, target: str, client: Client) -> None:
    """No job will come of it."""
    before = newest(client)
    done = submit(joined, "sbatch", "--test-only", "--gpus=h100:1", joined.script(FITS), env={"PEAKGATE_SERVER": target})
    assert "peakgate: fits" in done.stderr, done.stderr
    assert newest(client) == before


def test_epilogs_are_quick_and_end_well_whatever_happens(joined: Slurm) -> None:
    """A failing one drains the node, a slow one holds every job's end up."""
    for context, settings in (("epilog_slurmd", {}), ("epilog_slurmctld", {}), ("epilog_slurmctld", {"SLURM_JOB_ID": "no number"})):
        began = time.monotonic()
        variables = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "99999", "SLURM_SCRIPT_CONTEXT": context} | settings
        done = subprocess.run([joined.folder / "epilog"], env=variables, check=False, capture_output=True, timeout=10)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert time.monotonic() - began < 0.1


def test_from_sbatch_to_a_changed_bound(joined: Slurm, target: str, client: Client, tmp_path: Path) -> None:
    """Submitted, admitted, run with memory on a card, observed, joined, learned: the same job's bound is another one afterwards."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")
    home = joined.home()
    path = with_launcher(joined, f"echo $$ > {home}/pid\nwhile [ ! -e {home}/go ]; do sleep 0.1; done\n", name="trains")
    with running_gate(tmp_path, ENFORCE, "--server", target, "--cluster", "testcluster") as gate:
        use_hook(joined, gate.socket)
        done = submit(joined, "sbatch", "--gpus=h100:1", joined.script(FITS), env={"PEAKGATE_SERVER": target, "PATH": path})
        assert done.returncode == 0, done.stderr
        assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["peakgate"]  # the gate does not say it again
        number, prediction = job_number(done), newest(client)
        (decision,) = gate.journal(1)
    assert (decision["verdict"], decision["prediction"], decision["by"]) == ("ADMIT", prediction.removeprefix("predictions/"), "stored")
    assert joined.job(number)["AdminComment"].strip() == f"peakgate={prediction.removeprefix('predictions/')}"
    before = stored(client, prediction)
    until((home / "pid").exists, "the training process")
    with _agent(joined, target, tmp_path, int((home / "pid").read_text()), before.stored.peak.device_bytes):
        until(lambda: stored(client, prediction).stored.observed_device_bytes, "an observed peak")
        time.sleep(1.5)
        (home / "go").touch()
        assert joined.wait(number)["JobState"] == "COMPLETED"
        until(lambda: stored(client, prediction).stored.state == "finished", "the end of the job")
        until(lambda: stored(client, prediction).observations, f"an observation: {(joined.folder / 'ended.log').read_text()}")
    (observation,) = stored(client, prediction).observations
    assert (observation.job, observation.kind, observation.learned) == (str(number), "exact", True), observation
    after = client.predict(before.job, validate_only=True)
    assert after.calibration.observations == before.prediction.calibration.observations + 1
    assert after.peak.bound_bytes != before.stored.peak.bound_bytes
    words = ("--since", "1h", "--journal", str(tmp_path / "journal.jsonl"), "--server", target, "--output", "json")
    told = json.loads(_command("slurm", "report", *words))
    assert (told["submissions"], told["counts"]["right"], told["jobs"]) == (1, 1, [])


def _command(*words: str) -> str:
    """What the command says."""
    done = subprocess.run([str(PEAKGATE), *words], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class _agent:  # noqa: N801 - used as a block
    """The node's agent on a simulated card that the job's process holds memory of."""

    def __init__(self, slurm: Slurm, target: str, folder: Path, pid: int, size_bytes: int) -> None:
        scenario = folder / "node.scn"
        scenario.write_text(SCENARIO.format(uuid=UUID.format(0), pid=pid, mib=int(size_bytes * 1.02) >> 20))
        names = {"server": target, "cluster": "testcluster", "node": "h100n1", "simulate": str(scenario), "interval_seconds": 0.3}
        places = {"spool": str(folder / "agent.db"), "jobs_folder": str(slurm.folder / "jobs")}
        self._command = [sys.executable, "-c", AGENT, json.dumps(names), json.dumps(places)]
        self._log = folder / "agent.log"

    def __enter__(self) -> None:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(self._command, cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
