"""Exercise 3: activations of one layer by mode (Lesson 6, section 3, "What changes the count")."""

from __future__ import annotations

from peakgate.memory.exercises.lesson import activations_at_peak, lesson_job


def activation_bytes(s: int, b: int, h: int, a: int, mode: str = "baseline", style: str = "gpt") -> int:
    """Bytes that one layer adds to the peak of a step in a mode of `MODES`: two whole steps are walked, one with a layer more.

    `saved_tensors` lists what these bytes are.
    """
    more, fewer = (activations_at_peak(lesson_job(s=s, b=b, h=h, a=a, L=layers, mode=mode, style=style)) for layers in (3, 2))
    return more - fewer
