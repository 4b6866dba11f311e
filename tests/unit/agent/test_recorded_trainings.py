"""Trainings of one job through a recording."""

from __future__ import annotations

from pathlib import Path

from tests.unit.agent.builders import GIB, START, ProcTree, a_list

from peakgate.agent.attribution import Attribution
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.peaks import Flag
from peakgate.agent.proc import ProcFolder
from peakgate.agent.recorder import Recorder
from peakgate.agent.replay import replay
from peakgate.agent.tracker import Tracker


def test_a_recording_keeps_the_trainings_apart(tmp_path: Path) -> None:
    """Two programs of one shell under one prediction: the replay has the node's rows, each training's and flagged."""
    tree = ProcTree(tmp_path / "proc")
    tree.add(3, executable="/bin/bash")
    for pid in (7, 8):
        tree.add(pid, parent=3, environment={"PEAKGATE_PREDICTION": "predictions/p1"})
    proc = ProcFolder(root=tree.root)
    attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=tmp_path / "jobs"))
    tracker, recorder = (
        Tracker(attribution=attribution, proc=proc, boot_id="b"),
        Recorder(path=tmp_path / "r", attribution=attribution, proc=proc),
    )
    for second in range(3):
        sample = a_list(START + second, {7: GIB, 8: 2 * GIB})
        recorder.write(sample)
        tracker.take(sample)
    recorder.close()
    rows, _ = replay(tmp_path / "r")
    whole = {row.key.step: (row.peak_bytes, row.flags & Flag.SEVERAL) for row in rows if row.key.pid == 0}
    assert whole == {"": (GIB, Flag.SEVERAL), "8": (2 * GIB, Flag.SEVERAL)}
    want = {row.key.step: (row.peak_bytes, row.flags & Flag.SEVERAL) for row in tracker.everything() if row.key.pid == 0}
    assert whole == want


def test_a_recording_marks_the_training_that_had_ended(tmp_path: Path) -> None:
    """One program after the other under one prediction: the first's row, reported as ended, comes marked once more, as on the node."""
    tree = ProcTree(tmp_path / "proc")
    tree.add(3, executable="/bin/bash")
    tree.add(7, parent=3, environment={"PEAKGATE_PREDICTION": "predictions/p1"})
    proc = ProcFolder(root=tree.root)
    attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=tmp_path / "jobs"))
    tracker = Tracker(attribution=attribution, proc=proc, boot_id="b")
    recorder = Recorder(path=tmp_path / "r", attribution=attribution, proc=proc)
    for second, used in enumerate(({7: GIB}, {}, {8: 2 * GIB})):
        if second == 1:
            tree.remove(7)
            tree.add(8, parent=3, start_ticks=900, environment={"PEAKGATE_PREDICTION": "predictions/p1"})
        sample = a_list(START + second, used)
        recorder.write(sample)
        tracker.take(sample)
    recorder.close()
    rows, _ = replay(tmp_path / "r")
    whole = {row.key.step: (row.ended, row.flags & Flag.SEVERAL) for row in rows if row.key.pid == 0}
    assert whole == {"": (True, Flag.SEVERAL), "8": (False, Flag.SEVERAL)}
