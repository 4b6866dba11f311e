"""What holds on a Slurm cluster unless a setting says otherwise: for the commands, the gate and its check-up. Imports nothing of weight."""

from __future__ import annotations

from pathlib import Path

SUBMIT_PROGRAMS = ("sbatch", "srun", "salloc")
"""Slurm's commands that have a verb of ours with their words."""

CARDS_FILE = Path("/etc/peakgate/cards.yaml")
"""The administrator's table of cards."""

RULES_FILE = Path("/etc/peakgate/gate.yaml")
"""Who is judged how."""

GATE_SOCKET = Path("/run/peakgate/gate.sock")
JOURNAL_FILE = Path("/var/log/peakgate/decisions.jsonl")

SERVICE_SECONDS = 0.15
"""The gate gives the service so long for an answer: with what it does itself, less than the controller waits."""
