"""`peakgate sbatch` as a normal user of the test cluster has it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.bench.programs import ROOT
from tests.contract.sources import CODE_ROOTS
from tests.integration.slurm.cluster import SEARCHED, Done, Slurm

SOURCES = os.pathsep.join(str(ROOT / root) for root in CODE_ROOTS)
STARTS = "from peakgate.client.main import main; main()"

LAUNCH = (
    "accelerate launch sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size {batch} --max_length 4096 "
    "--gradient_checkpointing {checkpointing} --packing --dataset_name x\n"
)
FITS, TOO_LARGE = LAUNCH.format(batch=1, checkpointing="true"), LAUNCH.format(batch=128, checkpointing="false")
SHOWS = """
function slurm_job_submit(jd, part_list, uid)
  local environment = jd.environment or {{}}
  local file = io.open("{folder}/seen", "w")
  file:write(tostring(jd.comment), "\\n", tostring(jd.environment and jd.environment["PEAKGATE_PREDICTION"]), "\\n")
  for _, name in ipairs({{"PEAKGATE_ATTACHED", "PEAKGATE_JOB", "SLURM_PEAKGATE_ATTACHED", "SLURM_PEAKGATE_JOB"}}) do
    file:write(name, "=", tostring(jd.environment and jd.environment[name] or ""), "\\n")
  end
  file:write(tostring(jd.script or ""))
  file:close()
  return slurm.SUCCESS
end
function slurm_job_modify(jd, job_rec, part_list, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
"""A job_submit.lua that writes down what a plugin of the controller sees."""


class Seen:
    """What the controller's plugin saw of the last submission."""

    def __init__(self, slurm: Slurm) -> None:
        lines = (slurm.folder / "seen").read_bytes().decode("utf-8", "surrogateescape").split("\n")
        self.comment = "" if lines[0] == "nil" else lines[0]
        self.environment = dict(line.split("=", 1) for line in lines[2:6])
        self.script = "\n".join(lines[6:])


def watch(slurm: Slurm) -> None:
    """Has the controller write down what it sees."""
    slurm.job_submit(SHOWS.format(folder=slurm.folder))
    (slurm.folder / "seen").write_text("")


def with_launcher(slurm: Slurm, does: str = "", name: str = "bin") -> str:
    """PATH with an `accelerate` that does something else, for there is no model to train on a test cluster."""
    launcher = slurm.home() / name / "accelerate"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f"#!/bin/sh\n{does}")
    launcher.chmod(0o755)
    return f"{launcher.parent}:{SEARCHED}"


def settings_of(slurm: Slurm) -> str:
    """The file of settings that a test wrote (use_service), else one that says nothing."""
    path = slurm.folder / "submit.yaml"
    return str(path) if path.exists() else os.devnull


def use_service(slurm: Slurm, target: str) -> None:
    """Submissions ask it, and wait for it: what is decided is tested, on a machine that may be busy."""
    slurm.write("submit.yaml", f"server: {target}\ndeadline_seconds: 30\n")


def submit(slurm: Slurm, *words: str | Path, stdin: str = "", env: Mapping[str, str] | None = None) -> Done:
    """Calls `peakgate WORDS` as the user, whose folder is the current one."""
    settings = {"PYTHONPATH": SOURCES, "PEAKGATE_SUBMIT_SETTINGS": settings_of(slurm), "PATH": with_launcher(slurm)} | dict(env or {})
    return slurm.run(sys.executable, "-c", STARTS, *words, env=settings, reads_all=True, stdin=stdin)
