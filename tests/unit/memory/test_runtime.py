"""What a process takes outside the allocator: the context by version and card, NCCL by its groups."""

from __future__ import annotations

import pytest

from peakgate.memory.job import Framework
from peakgate.memory.plan import Degrees
from peakgate.memory.runtime import (
    CONTEXT_BYTES,
    EAGER_CONTEXT_BYTES,
    FIRST_COMMUNICATOR_BYTES,
    FIRST_PAIR_BYTES,
    NEXT_COMMUNICATOR_BYTES,
    communication_bytes,
    context_bytes,
)

V100, A100 = (7, 0), (8, 0)


@pytest.mark.parametrize(
    ("stated", "capability", "want"),
    [
        (Framework(), V100, CONTEXT_BYTES),
        (Framework(cuda="12.4", torch="2.6"), V100, CONTEXT_BYTES),
        (Framework(cuda="11.2"), V100, 1343 << 20),
        (Framework(cuda="11.2"), A100, EAGER_CONTEXT_BYTES),
        (Framework(cuda="11.2"), None, EAGER_CONTEXT_BYTES),
        (Framework(torch="1.12.1"), A100, EAGER_CONTEXT_BYTES),
        (Framework(cuda="11.8", torch="1.12.1"), A100, EAGER_CONTEXT_BYTES),
        (Framework(cuda="11.8", torch="1.13"), A100, CONTEXT_BYTES),
    ],
)
def test_a_context_holds_every_kernel_or_those_in_use(stated: Framework, capability: tuple[int, int] | None, want: int) -> None:
    """CUDA before 11.7 and torch before 1.13 load all of them; nothing stated means today's."""
    assert context_bytes(stated, capability) == want


@pytest.mark.parametrize(
    ("degrees", "want"),
    [
        (Degrees(), 0),
        (Degrees(world=2, data=2), FIRST_PAIR_BYTES),
        (Degrees(world=8, data=8), FIRST_COMMUNICATOR_BYTES),
        (Degrees(world=4, data=2, tensor=2), FIRST_PAIR_BYTES + NEXT_COMMUNICATOR_BYTES),
        (Degrees(world=16, data=2, tensor=8), FIRST_COMMUNICATOR_BYTES + NEXT_COMMUNICATOR_BYTES),
    ],
)
def test_groups_of_ranks_cost_buffers(degrees: Degrees, want: int) -> None:
    """The first group brings its kernels, each further one its channels."""
    assert communication_bytes(degrees) == want
