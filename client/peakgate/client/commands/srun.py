"""`peakgate srun`: srun with a verdict before it."""

from __future__ import annotations

from peakgate.client.passed_on import Words, pass_on


def srun(words: Words = None) -> None:
    """Calls srun as it is, and says before whether the worst GPU of a training job fits.

    Every word is srun's own but --peakgate-try REASON, --peakgate-override WORD, --peakgate-mode MODE and --peakgate-server HOST:PORT.
    Exit status: srun's; 1 without it where the mode is enforce and the job does not fit.
    """
    pass_on("srun", words)
