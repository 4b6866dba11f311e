"""`peakgate probe`: what a snapshot of a run is read as, and what is refused."""

from __future__ import annotations

import json
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.client.snapshots import (
    BACKWARD,
    FORWARD,
    MIB,
    OPTIMIZER,
    a_block,
    a_segment,
    a_snapshot,
    a_step,
    moved,
    written,
)
from tests.unit.memory.builders import job_of

from peakgate.client.errors import InputError
from peakgate.client.probe.pickled import PlainPickle
from peakgate.client.probe.run import profile_of
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction

UNKNOWN = {"batch_size": 0, "gradient_accumulation_steps": 0, "optimizer": {"name": "", "implementation": ""}, "dtype": "", "world_size": 0}


def probed(folder: Path, snapshot: object, **facts: object) -> dict[str, object]:
    """The profile of a snapshot."""
    profile: dict[str, object] = json.loads(profile_of(written(folder, snapshot), UNKNOWN | facts, device=None))
    return profile


def answer(profile: dict[str, object], **fields: object) -> Prediction:
    """The prediction for a job whose model it is."""
    return predict(job_of({"model": {"profile": profile}, "gpu": {"type": "a100-40gb", "count": 1}, **fields}))


def by_category(prediction: Prediction) -> dict[str, int]:
    """The ledger at the peak, in MiB."""
    found: dict[str, int] = {}
    for line in prediction.ledger:
        found[line.category] = found.get(line.category, 0) + line.bytes // MIB
    return found


def test_stacks_tell_what_an_allocation_is(tmp_path: Path) -> None:
    """The peak is in the optimizer: weight, gradient, states, a temporary, and a workspace that the recorded step took for good."""
    seen = answer(probed(tmp_path, a_snapshot()))
    assert seen.peak_phase == "backward"
    assert seen.live_bytes == (4 + 8 + 32 + 2 + 4) * MIB
    ledger = by_category(seen)
    assert (ledger["parameters"], ledger["activations"], ledger["logits"], ledger["gradients"], ledger["temporaries"]) == (4, 8, 2, 4, 32)
    assert [point.phase for point in seen.timeline] == ["forward", "loss", "backward", "optimizer"]
    assert seen.undecided == ()


def test_reserved_is_the_measured_one(tmp_path: Path) -> None:
    """Segments at the end, and those that the history gave back: 64 MiB, and 100 before them; none is predicted."""
    seen = answer(probed(tmp_path, a_snapshot(None, a_segment(a_block(1, 4), a_block(4, 32), a_block(7, 8)))))
    assert seen.reserved_bytes == (64 + 100) * MIB
    assert seen.allocated_bytes <= seen.required_bytes - (seen.device_bytes - seen.reserved_bytes) <= seen.reserved_bytes
    assert sum(line.bytes for line in seen.ledger) == seen.device_bytes


def test_what_lived_before_the_recording_is_found_backward(tmp_path: Path) -> None:
    """A block that is never freed stands in the segments, one that is freed in its free; neither has a kind that stacks could tell."""
    entries = [*a_step()[1:], moved("free_completed", 40, 6)]
    seen = answer(
        probed(tmp_path, a_snapshot(entries, a_segment(a_block(1, 4), a_block(4, 32), a_block(7, 8), a_block(50, 1, "inactive"))))
    )
    assert seen.live_bytes == (4 + 6 + 8 + 32 + 2 + 4) * MIB
    (unknown,) = (line for line in seen.ledger if "before the recording" in line.item)
    assert unknown.bytes == (4 + 6) * MIB


def test_of_several_steps_the_one_with_the_peak_is_the_profile(tmp_path: Path) -> None:
    """Two equal steps: the second begins with the optimizer's states of the first, which are resident then."""
    second = [{**entry, "addr": int(str(entry["addr"])) + 100} for entry in a_step()[2:] if entry["addr"] not in (4, 7)]
    seen = answer(probed(tmp_path, a_snapshot([*a_step(), *second])))
    ledger = by_category(seen)
    assert seen.live_bytes == (4 + 8 + 32 + 8 + 2 + 4) * MIB
    assert (ledger["optimizer_states"], ledger["activations"]) == (8, 8)
    assert any("workspace" in line.item for line in seen.ledger)


def test_without_stacks_it_is_still_a_profile(tmp_path: Path) -> None:
    """One phase, one category, the same peak."""
    bare = [{**entry, "frames": []} for entry in a_step()]
    seen = answer(probed(tmp_path, a_snapshot(bare)))
    assert seen.live_bytes == (4 + 8 + 32 + 2 + 4) * MIB
    assert seen.peak_phase == "forward"
    assert set(by_category(seen)) == {"temporaries", "fragmentation", "runtime"}


def test_the_engine_runs_no_python(tmp_path: Path) -> None:
    """With Python stacks alone an allocation without one is the backward pass's."""
    entries = [{**entry, "frames": [] if entry["addr"] == 6 else entry["frames"]} for entry in a_step()]
    assert by_category(answer(probed(tmp_path, a_snapshot(entries))))["gradients"] == 4


def test_a_history_alone_is_enough(tmp_path: Path) -> None:
    """The list of `device_traces` without segments: reserved is then replayed."""
    seen = answer(probed(tmp_path, [a_step()]))
    assert seen.live_bytes == (4 + 8 + 32 + 2 + 4) * MIB
    assert seen.reserved_bytes >= seen.allocated_bytes


def test_the_pool_of_a_graph_is_not_flushed(tmp_path: Path) -> None:
    """What a CUDA graph allocated and freed stays needed beside a later allocation as large; an ordinary block is reused."""

    def need(**pool: object) -> int:
        first = [moved("alloc", 1, 600, FORWARD, **pool), moved("free_completed", 1, 600, **pool)]
        rest = [moved("alloc", 2, 400, BACKWARD), moved("free_completed", 2, 400), moved("alloc", 3, 1, OPTIMIZER)]
        return answer(probed(tmp_path, [[*first, *rest]])).required_bytes // MIB

    assert need(pool_id=(0, 1)) - need(pool_id=(0, 0)) == 400


def test_a_run_that_ran_out_of_memory_needs_more_than_it_shows(tmp_path: Path) -> None:
    """The request that failed is counted on top of what was alive, and the answer is UNDECIDED."""
    failed = {"action": "oom", "size": 512 * MIB, "device_free": 0, "stream": 0, "frames": []}
    seen = answer(probed(tmp_path, a_snapshot([*a_step()[:9], failed])))
    assert seen.live_bytes == (4 + 8 + 32 + 2 + 4 + 512) * MIB
    assert any("ran out of memory" in note for note in seen.undecided)


def test_a_job_may_say_only_what_is_known_of_the_run(tmp_path: Path) -> None:
    """A batch that the profile does not know is UNDECIDED, one that differs as well, and the same one is an answer."""
    batch = {"micro_batch_size": 4}
    assert "name it to `peakgate probe`" in answer(probed(tmp_path, a_snapshot()), batch=batch).undecided[0]
    assert "the run had 8" in answer(probed(tmp_path, a_snapshot(), batch_size=8), batch=batch).undecided[0]
    assert answer(probed(tmp_path, a_snapshot(), batch_size=4), batch=batch).undecided == ()
    assert "part of the run" in answer(probed(tmp_path, a_snapshot()), checkpointing={"mode": "full"}).undecided[0]


@pytest.mark.parametrize(
    ("content", "want"),
    [
        (b"", "cut off"),
        (pickle.dumps(a_snapshot())[:-40], "cut off"),
        (b"not a pickle at all", "no snapshot"),
        (pickle.dumps(Path("/")), "more than numbers, text and containers"),
        (pickle.dumps({"device_traces": [[1]]}), "no mapping"),
        (pickle.dumps({"device_traces": 3}), "no list"),
        (pickle.dumps(a_snapshot([])), "holds no history"),
        (pickle.dumps([a_step(), a_step()]), "several devices"),
        (pickle.dumps([[moved("alloc", -1, 1)]]), "addr is '-1'"),
        (pickle.dumps([[moved("alloc", 1, 1 << 40)]]), "size is"),
        (pickle.dumps({1: 2}), "keys are no text"),
        (b"\x1f\x8b\x08\x00", "gzip archive: unpack"),
        (b"PK\x03\x04", "zip archive: unpack"),
        (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", "cut off"),
        (b"\x80\x04]r\xff\xff\xff\xff\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", "no snapshot"),
        (b"\x80\x04(((((.", "no snapshot"),
        (b"\x80\x04]]a]h\x07.", "no snapshot"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes, want: str) -> None:
    """Cut off, foreign, archives, absurd sizes, announced but absent gigabytes: one clear line, and no code is run."""
    path = tmp_path / "bad.pickle"
    path.write_bytes(content)
    with pytest.raises(InputError, match=want) as caught:
        profile_of(path, UNKNOWN, device=None)
    assert caught.value.exit_status == 2


def test_a_flood_of_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte a container is the densest file there is; the limit stops it."""
    monkeypatch.setattr("peakgate.client.probe.pickled.MOST_VALUES", 1000)
    with pytest.raises(InputError, match="more than 1000 values"):
        PlainPickle(b"]" * 2000 + b".").load()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_comes_back_as_it_was(protocol: int) -> None:
    """Every protocol, numbers of every width, shared parts."""
    part = {"a": [1, 300, 70000, -5, 1 << 40, 2.5, None, True, False]}
    data = {"x": [part, part, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "y": "é" * 300, "z": []}
    content = pickle.dumps(data, protocol)
    assert PlainPickle(content).load() == data
    assert PlainPickle(pickletools.optimize(content)).load() == data


def test_a_larger_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is read."""
    monkeypatch.setattr("peakgate.client.probe.run.LARGEST_FILE", 100)
    with pytest.raises(InputError, match="larger than 100 bytes"):
        profile_of(written(tmp_path, a_snapshot()), UNKNOWN, device=None)


def test_the_verb_needs_no_torch(tmp_path: Path) -> None:
    """`peakgate probe` where PyTorch cannot be imported: a profile, and status 2 with one line for what is none."""
    program = "import sys; sys.modules['torch'] = None; from peakgate.client.main import main; main()"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program, "probe", *arguments], capture_output=True, text=True, check=False)

    done = run(str(written(tmp_path, a_snapshot())), "--micro-batch-size", "4")
    assert json.loads(done.stdout)["batch_size"] == 4
    (tmp_path / "bad").write_bytes(b"none")
    refused = run(str(tmp_path / "bad"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no snapshot" in refused.stderr
