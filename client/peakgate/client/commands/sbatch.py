"""`peakgate sbatch`: sbatch with a verdict before it."""

from __future__ import annotations

from peakgate.client.passed_on import Words, pass_on


def sbatch(words: Words = None) -> None:
    """Calls sbatch as it is, and says before whether the worst GPU of a training job fits.

    Every word is sbatch's own but --peakgate-try REASON, --peakgate-override WORD, --peakgate-mode MODE and --peakgate-server HOST:PORT.
    Exit status: sbatch's; 1 without it where the mode is enforce and the job does not fit.
    """
    pass_on("sbatch", words)
