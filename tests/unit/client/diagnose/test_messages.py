"""The words of every library's message, as figures."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.client.diagnose.find import find_failure
from peakgate.client.diagnose.messages import Message

GIB, MIB = 2**30, 2**20


def message(text: str) -> Message:
    """The failure in a text; the test fails without one."""
    failure = find_failure([text])
    assert failure is not None, text
    return failure.message


def test_the_message_of_today() -> None:
    """PyTorch since 2.1: every figure, in its unit, with what the two digits leave open."""
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 2 has a total capacity of 23.69 GiB of which "
        "1012.69 MiB is free. Process 99 has 456.00 MiB memory in use. Including non-PyTorch memory, this process has 14.33 GiB memory in "
        "use. Of the allocated memory 13.18 GiB is allocated by PyTorch, and 438.51 MiB is reserved by PyTorch but unallocated."
    )
    found = message(text)
    assert (found.kind.name, found.device) == ("allocator", 2)
    want = {"tried": 3.91 * GIB, "capacity": 23.69 * GIB, "free": 1012.69 * MIB, "process": 14.33 * GIB, "allocated": 13.18 * GIB}
    assert {name: found.bytes_of(name) for name in want} == {name: round(size) for name, size in want.items()}
    assert found.sizes["tried"].slack_bytes == pytest.approx(0.005 * GIB)
    assert found.unallocated_bytes == round(438.51 * MIB)
    assert found.others == {99: 456 * MIB}


@pytest.mark.parametrize("last", ["10.22 GiB reserved in total by PyTorch)", "10.22 GiB cached)"])
def test_the_messages_of_former_versions(last: str) -> None:
    """PyTorch up to 2.0, and up to 1.3: what is reserved and free of tensors is the difference."""
    figures = f"GPU 0; 15.78 GiB total capacity; 10.16 GiB already allocated; 0 bytes free; {last}"
    found = message(f"CUDA out of memory. Tried to allocate 786.00 MiB ({figures}")
    assert (found.bytes_of("tried"), found.bytes_of("free"), found.bytes_of("capacity")) == (786 * MIB, 0, round(15.78 * GIB))
    assert found.unallocated_bytes == pytest.approx(0.06 * GIB, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("HIP out of memory. Tried to allocate 2.00 GiB.", "allocator"),
        ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported", "driver"),
        ("Error out of memory at line 380 in file /src/csrc/pythonInterface.c", "driver"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "library"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "library"),
        ("misc/strongstream.cc:395 NCCL WARN Cuda failure 2 'out of memory'", "network"),
        ("ncclUnhandledCudaError: Call to CUDA function failed.", "network-fault"),
        ("NCCL error in: ProcessGroupNCCL.cpp:911, unhandled cuda error, NCCL version 2.7.8", "network-fault"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", "xla"),
        ("XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 24.64G of 15.48G hbm.", "xla"),
        ("[enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes.", "host"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1, 2)", "host"),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", "shared-memory"),
        ("  exitcode  : -9 (pid: 4242)", "killed"),
        ("srun: error: task 3 exited with exit code 137", "killed"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=4.0. Some of the step tasks have been OOM Killed.", "killed"),
        ("    Reason:  OOMKilled", "killed"),
        ("/var/spool/job/slurm_script: line 8: 1234 Killed   python train.py", "killed"),
        ("RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.", "killed"),
    ],
)
def test_each_way_to_run_out_is_known(text: str, want: str) -> None:
    """A message of every library is told from the others."""
    assert message(f"step 3\n{text}\n").kind.name == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", 8589934592),
        ("RESOURCE_EXHAUSTED: Failed to allocate request for 1.50GiB (1610612736B) on device ordinal 0", 1610612736),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12", 4096),
        ("_ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1,)", round(7.45 * GIB)),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 8.0KiB (rounded to 8192)", 8192),
    ],
)
def test_what_others_asked_for(text: str, want: int) -> None:
    """Exact bytes are taken where a message has them."""
    assert message(text).bytes_of("tried") == want


@pytest.mark.parametrize("text", ["", "loss 1.3\nall went well", "Exit code 1", "saved model memory.py", "exit code: 13700"])
def test_other_text_is_no_failure(text: str) -> None:
    """Nothing is found where nothing failed for memory."""
    assert find_failure([text]) is None


def test_the_gpu_comes_before_what_follows_from_it() -> None:
    """A rank that fails on the GPU takes others with it: their words come later and say less."""
    text = "CUDA out of memory. Tried to allocate 2.00 GiB.\nncclUnhandledCudaError\nexitcode : -9\n"
    assert message(text).kind.name == "allocator"


def test_an_earlier_window_may_hold_the_cause() -> None:
    """What stands at the end is taken only when no GPU failure stands before it."""
    failure = find_failure(["exitcode : -9 (pid: 3)\n", "CUDA out of memory. Tried to allocate 2.00 GiB.\n"])
    assert failure is not None
    assert failure.message.kind.name == "allocator"


@given(st.text(max_size=400))
def test_no_text_breaks_it(text: str) -> None:
    """Whatever follows a message, its figures are read or left out."""
    found = message(f"CUDA out of memory. Tried to allocate {text}")
    assert all(size.bytes >= 0 for size in found.sizes.values())


def test_a_number_without_end_is_no_trouble() -> None:
    """A line of megabytes of digits behind a message."""
    assert message("CUDA out of memory. Tried to allocate " + "1" * 5_000_000).kind.name == "allocator"


@pytest.mark.parametrize("filler", ["\n" * 3_000_000, "x" * 5_000_000, "exit " * 1_000_000], ids=["blank", "one line", "one word"])
def test_a_strange_log_takes_no_time(filler: str) -> None:
    """Megabytes of blank lines, of one line, or of a word that messages have, are passed over in seconds."""
    start = time.perf_counter()
    assert find_failure([filler]) is None
    assert message(f"{filler}\nCUDA out of memory. Tried to allocate 2.00 GiB.").kind.name == "allocator"
    assert time.perf_counter() - start < 10
