"""The MIG slices that a profile alone may mean: of every card of the catalogue that has it. Pure.

A profile's name holds its memory in GiB, as a part of the card's (NVIDIA/go-nvlib pkg/nvlib/device/mig_profile.go, getMigMemorySizeGB): a
slice of the same name on a card that the catalogue does not hold is of about the same size.
"""

from __future__ import annotations

from collections.abc import Iterable

from peakgate.hooks.kubernetes.candidates import Candidate

MEDIA = "+me"
"""Of a profile with the card's media engines, which have no memory of their own."""


def slices_named(profile: str, catalogue: Iterable[str]) -> list[Candidate]:
    """One for each card that has the profile; none where no card of the catalogue does, or the profile is none."""
    plain = profile.removesuffix(MEDIA)
    names = [name for name in catalogue if plain and name.partition("/")[2] == plain]
    return [Candidate(gpu=name, on=name, memory_source=f"the profile {profile} of {name.partition('/')[0]}") for name in names]
