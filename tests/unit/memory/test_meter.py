"""Live bytes and blocks of a walked step: highest moments, categories, repetitions, events."""

from __future__ import annotations

from peakgate.memory.meter import High, Meter


def a_meter(**settings: object) -> Meter:
    """A meter that rounds to tens."""
    meter = Meter(lambda nbytes: -(-nbytes // 10) * 10, **settings)  # type: ignore[arg-type]  # settings of Meter
    meter.enter("forward")
    return meter


def take(meter: Meter, nbytes: int, category: str = "activations") -> int:
    """Allocates."""
    return meter.add(nbytes, meter.block_bytes(nbytes), category)


def give(meter: Meter, nbytes: int, number: int, category: str = "activations") -> None:
    """Frees."""
    meter.sub(nbytes, meter.block_bytes(nbytes), category, number)


def test_the_highest_moment_of_each_phase_is_kept_with_its_categories() -> None:
    """Bytes and blocks side by side; a phase starts from what is live."""
    meter = a_meter()
    first = take(meter, 5)
    take(meter, 12, "temporaries")
    give(meter, 5, first)
    meter.enter("backward")
    take(meter, 1, "gradients")
    meter.enter("end")
    empty = {"logits": 0, "communication": 0}
    assert meter.highs == {
        "forward": High(17, 30, {"activations": 10, "temporaries": 20, "gradients": 0, **empty}),
        "backward": High(13, 30, {"activations": 0, "temporaries": 20, "gradients": 10, **empty}),
    }


def test_a_phase_that_comes_again_keeps_its_highest_moment() -> None:
    """The second forward pass of an accumulating step is lower."""
    meter = a_meter()
    number = take(meter, 50)
    meter.enter("backward")
    give(meter, 50, number)
    meter.enter("forward")
    take(meter, 5)
    meter.enter("end")
    assert meter.highs["forward"].live == 50


def test_a_category_that_is_ignored_is_not_counted() -> None:
    """The textbook counts no temporaries, until autograd keeps one."""
    meter = a_meter(ignored=frozenset({"temporaries"}))
    take(meter, 20, "temporaries")
    assert (meter.live, meter.blocks) == (0, 0)
    meter.move(20, 20, "temporaries", "activations")
    assert (meter.live, meter.by["activations"]) == (20, 20)


def test_a_growing_repetition_is_highest_at_its_end() -> None:
    """Three layers that keep 10 each on top of a moment of 30."""
    meter = a_meter()
    with meter.repeated(3, "layer"):
        take(meter, 10)
        give(meter, 20, take(meter, 20, "temporaries"), "temporaries")
    assert (meter.live, meter.blocks, meter.high_live, meter.high_blocks) == (30, 30, 50, 50)
    assert meter.high_by["activations"] == 30
    assert [(point.label, point.blocks) for point in meter.points] == [("layer", 30), ("layer", 40), ("layer", 50)]


def test_a_shrinking_repetition_is_highest_at_its_start() -> None:
    """Three layers that give 10 back each, after a moment of 5 more."""
    meter = a_meter()
    numbers = [take(meter, 10) for _ in range(3)]
    meter.enter("backward")
    with meter.repeated(3, "layer"):
        give(meter, 5, take(meter, 5, "temporaries"), "temporaries")
        give(meter, 10, numbers[0])
    assert (meter.live, meter.high_live, meter.high_blocks) == (0, 35, 40)


def test_a_high_before_a_repetition_stays() -> None:
    """What was higher in the same phase is not forgotten."""
    meter = a_meter()
    give(meter, 100, take(meter, 100))
    with meter.repeated(2):
        take(meter, 10)
    assert (meter.high_live, meter.high_blocks, meter.live) == (100, 100, 20)


def test_events_are_kept_when_asked_for() -> None:
    """Numbers pair an allocation with its free; nothing of zero bytes, and ignored categories as well: the allocator sees them."""
    meter = a_meter(events=[], ignored=frozenset({"temporaries"}))
    first = take(meter, 5)
    second = take(meter, 7, "temporaries")
    take(meter, 0)
    give(meter, 5, first)
    assert meter.events == [(first, 5), (second, 7), (first, -5)]
