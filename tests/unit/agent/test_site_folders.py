"""Drop-in files of dcgm-exporter and jobstats, and the number that a GPU's file is named by."""

from __future__ import annotations

from os import mkfifo
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GPU, write_job_file

from peakgate.agent.drop_ins import DropIns
from peakgate.agent.gpu_numbers import REFRESH_SECONDS, GpuNumbers, NvmlNumbers
from peakgate.agent.jobs_folder import JobFile, JobsFolder
from peakgate.agent.site_folders import ABSENT_SECONDS, NumbersOf, SiteFolder, dcgm_folder, jobstats_folder

MIG = "MIG-265a219d-a49f-578a-825d-222c72699c16"
SAME = GpuNumbers(index=2, minor=2)
DIFFERENT = GpuNumbers(index=0, minor=2)


def numbers(value: GpuNumbers | None) -> NumbersOf:
    """Every GPU has these numbers."""
    return lambda gpu_uuid: value


def dcgm(folder: Path, value: GpuNumbers | None = SAME, *, meaning: str = "auto") -> SiteFolder:
    """dcgm-exporter's folder on a node whose GPU has these numbers."""
    return dcgm_folder(folder=folder, meaning=meaning, numbers_of=numbers(value))


def jobstats(folder: Path, value: GpuNumbers | None = SAME, *, meaning: str = "auto") -> SiteFolder:
    """The same of jobstats."""
    return jobstats_folder(folder=folder, meaning=meaning, numbers_of=numbers(value))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("402\n", ["402"]),
        ("402", ["402"]),
        ("402\n403\n", ["402", "403"]),
        ("402\n\n402\r\n", ["402"]),
        ("job_with_a_name", ["job_with_a_name"]),
        ("", []),
        ("\n \n", []),
        ("4\x1b[31m2", []),
        ("4" * 101, []),
    ],
)
def test_dcgm_exporters_file_names_jobs_a_line(tmp_path: Path, text: str, want: list[str]) -> None:
    """One job a line; an empty file is a GPU without a job, and what is no id is not taken."""
    (tmp_path / "2").write_bytes(text.encode())
    assert [job.job for job in dcgm(tmp_path).jobs_on(GPU)] == want


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    """A pipe in the place of a file would hold up all GPUs of the node until somebody writes into it."""
    path = tmp_path / "2"
    mkfifo(path) if kind == "pipe" else path.mkdir()
    with capture_logs() as logs:
        assert dcgm(tmp_path).jobs_on(GPU) == ()
    assert [line["problem"] for line in logs] == ["it is no regular file"]


def test_dcgm_exporters_file_of_a_mig_instance(tmp_path: Path) -> None:
    """GPU and GPU instance id, with a dot between; the file of the whole GPU is not the instance's."""
    (tmp_path / "2.9").write_text("402")
    (tmp_path / "2").write_text("999")
    folder = dcgm(tmp_path, GpuNumbers(index=2, minor=2, instance=9))
    assert folder.jobs_on(MIG) == (JobFile(job="402"),)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("247609 223456\n", (JobFile(job="247609", uid=223456),)),
        ("247609", (JobFile(job="247609"),)),
        ("", ()),
        ("247609 223456 7", ()),
        ("job 223456", ()),
        ("٤٠٢ 7", ()),
        (f"{'9' * 40} 7", ()),
    ],
)
def test_jobstats_file_holds_job_and_user(tmp_path: Path, text: str, want: tuple[JobFile, ...]) -> None:
    """Two numbers on a line; anything else is not guessed at."""
    (tmp_path / GPU).write_text(text)
    assert jobstats(tmp_path).jobs_on(GPU) == want


@pytest.mark.parametrize(("name", "gpu"), [(GPU, GPU), ("2", GPU), (MIG, MIG), ("2.9", MIG)])
def test_jobstats_file_is_named_by_uuid_or_number(tmp_path: Path, name: str, gpu: str) -> None:
    """Its prolog writes both, and for a MIG instance its UUID."""
    (tmp_path / name).write_text("402 1000")
    instance = GpuNumbers(index=2, minor=2, instance=9) if gpu == MIG else SAME
    assert jobstats(tmp_path, instance).jobs_on(gpu) == (JobFile(job="402", uid=1000),)


def test_the_uuids_file_stands_above_the_numbers(tmp_path: Path) -> None:
    """A UUID is of one GPU for ever."""
    (tmp_path / GPU).write_text("402 1000")
    (tmp_path / "2").write_text("403 1000")
    assert jobstats(tmp_path).jobs_on(GPU) == (JobFile(job="402", uid=1000),)


@pytest.mark.parametrize(("meaning", "want"), [("index", ["400"]), ("minor", ["402"]), ("auto", [])])
def test_a_number_that_may_be_either_is_not_believed(tmp_path: Path, meaning: str, want: list[str]) -> None:
    """GPU 0 of nvidia-smi is /dev/nvidia2 here: only who is told which number the prolog writes may read the file."""
    for number in range(3):
        (tmp_path / str(number)).write_text(f"40{number}")
    for folder in (dcgm(tmp_path, DIFFERENT, meaning=meaning), jobstats(tmp_path, DIFFERENT, meaning=meaning)):
        with capture_logs() as logs:
            got = [[job.job for job in folder.jobs_on(GPU)] for _ in range(2)]
        assert got == [want, want]
        assert [(entry["index"], entry["minor"]) for entry in logs] == ([] if want else [(0, 2)])


def test_a_gpu_without_numbers_has_no_file(tmp_path: Path) -> None:
    """When NVML cannot say which number a GPU has, no file is taken for its."""
    (tmp_path / "0").write_text("402")
    assert (dcgm(tmp_path, None).jobs_on(GPU), jobstats(tmp_path, None).jobs_on(GPU)) == ((), ())


def test_a_folder_that_comes_later_counts_from_then_on(tmp_path: Path) -> None:
    """The first job's prolog makes it; a missing folder is no error and no log line."""
    now = [0.0]
    folder = jobstats_folder(folder=tmp_path / "gpustat", meaning="auto", numbers_of=numbers(DIFFERENT), clock=lambda: now[0])
    with capture_logs() as logs:
        assert folder.jobs_on(GPU) == ()
    assert logs == []
    (tmp_path / "gpustat").mkdir()
    (tmp_path / "gpustat" / GPU).write_text("402 1000")
    now[0] = ABSENT_SECONDS
    assert [job.job for job in folder.jobs_on(GPU)] == ["402"]


def test_our_own_file_stands_above_the_sites(tmp_path: Path) -> None:
    """The first folder that says something counts; the others fill in where it is silent."""
    (tmp_path / "2").write_text("402")
    drop_ins = DropIns(JobsFolder(folder=tmp_path), jobstats(tmp_path), dcgm(tmp_path))
    assert drop_ins.jobs_on(GPU) == (JobFile(job="402"),)
    write_job_file(tmp_path, GPU, job="403", prediction="predictions/p1")
    assert drop_ins.jobs_on(GPU) == (JobFile(job="403", prediction="predictions/p1"),)


class UnknownGpuError(Exception):
    """NVML's error."""


class Module:
    """A pynvml of one GPU, whose place in NVML's order is not that of its device file, with one MIG instance."""

    NVMLError: type[Exception] = UnknownGpuError

    def __init__(self) -> None:
        self.calls = 0
        self.index = 0

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:
        """Handles are the UUIDs."""
        self.calls += 1
        if uuid not in (GPU, MIG):
            raise UnknownGpuError
        return uuid

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: object) -> object:
        """The instance is of the GPU."""
        assert handle == MIG
        return GPU

    def nvmlDeviceGetIndex(self, handle: object) -> int:
        """Of the GPU only."""
        assert handle == GPU
        return self.index

    def nvmlDeviceGetMinorNumber(self, handle: object) -> int:
        """Of the GPU only."""
        assert handle == GPU
        return 2

    def nvmlDeviceGetGpuInstanceId(self, handle: object) -> int:
        """Of the instance only."""
        assert handle == MIG
        return 9


def test_nvml_says_the_numbers() -> None:
    """Index and minor of a GPU; of an instance those of its GPU, and its id; of a GPU that NVML does not know, nothing."""
    known = NvmlNumbers(module=Module())
    assert known.of(GPU) == GpuNumbers(index=0, minor=2)
    assert known.of(MIG) == GpuNumbers(index=0, minor=2, instance=9)
    assert known.of("GPU-of-another-node") is None


def test_nvml_is_asked_once_a_minute() -> None:
    """The order changes when a GPU is lost, so an answer is not kept for ever, and an unknown GPU is not asked for every second."""
    now = [0.0]
    module = Module()
    known = NvmlNumbers(module=module, clock=lambda: now[0])
    assert [known.of(gpu) for gpu in (GPU, GPU, "x", "x")] == [GpuNumbers(index=0, minor=2)] * 2 + [None] * 2
    assert module.calls == 2
    module.index, now[0] = 1, REFRESH_SECONDS
    assert known.of(GPU) == GpuNumbers(index=1, minor=2)
