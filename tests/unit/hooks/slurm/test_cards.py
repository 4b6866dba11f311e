"""Which card a submission is judged on."""

from __future__ import annotations

import time

import pytest

from peakgate.hooks.slurm.card_table import CATALOGUE, CardTable, Row, Untyped
from peakgate.hooks.slurm.cards import Card, Cards, Choice, pinned
from peakgate.hooks.slurm.submission import Submission, submission_of

GIB = 1 << 30
SITE = CardTable(
    default_partition="h100",
    cards=(
        Row(type="h100", nodes="h[1-2]", partitions=("h100", "any"), features=("hopper", "gpu80g"), count=8, gpu="h100-80gb"),
        Row(type="a100-40", nodes="a1", partitions=("a100", "any"), features=("ampere",), count=4, memory_bytes=40 * GIB),
        Row(type="a100-80", nodes="a1", partitions=("a100", "any"), features=("ampere",), count=4, memory_bytes=80 * GIB),
        Row(type="kraken", nodes="o1", partitions=("odd",), count=2),
        Row(type="", nodes="v1", partitions=("old",), features=("v100-16g",), count=4),
    ),
)


def a_submission(request: str = "gres:gpu:1", /, **fields: object) -> Submission:
    """Of GPUs a node."""
    return submission_of({"tres_per_node": request, **fields})


def labels(choice: Choice) -> list[str]:
    """The types that may be had."""
    return [card.label for card in choice.cards]


def card_of(choice: Choice) -> Card:
    """The one to judge on; there must be one."""
    assert choice.card is not None, choice.doubt
    return choice.card


def test_a_type_that_the_table_knows() -> None:
    """By the table's name or its bytes, wherever it is asked for, in any case of letters."""
    cards = Cards(table=SITE)
    assert card_of(cards.choose(a_submission("gres:gpu:h100:2"))) == Card(name="h100-80gb", label="h100", source="admin")
    assert card_of(cards.choose(a_submission("gres:gpu:A100-80:2", partition="a100"))).memory_bytes == 80 * GIB


def test_a_type_that_only_its_name_explains() -> None:
    """Without a table the names of types are those of cards."""
    card = card_of(Cards().choose(a_submission("gres/gpu:nvidia_h100_80gb_hbm3=8")))
    assert (card.name, card.label, card.source) == ("h100-80gb", "nvidia_h100_80gb_hbm3", CATALOGUE)


@pytest.mark.parametrize(
    ("request_", "want_doubt"),
    [
        ("gres:gpu:a100:1", "the type a100 may be a100-40gb or a100-80gb"),
        ("gres:gpu:kraken:1", "the type kraken says nothing"),
        ("gres:gpu:1", "a card without a type says nothing"),
        ("gres:gpu:1g.10gb:1", "the type 1g.10gb says nothing"),
        ("gres:shard:1", "a share of a card"),
        ("gres:gpu:a:b:c", "cannot be read: gres:gpu:a:b:c"),
    ],
)
def test_nobody_knows(request_: str, want_doubt: str) -> None:
    """Then there is no card, and why is said."""
    choice = Cards().choose(a_submission(request_))
    assert choice.card is None
    assert want_doubt in choice.doubt


@pytest.mark.parametrize(("policy", "want"), [(Untyped.worst, "a100-40"), (Untyped.best, "a100-80"), (Untyped.pin, "a100-80")], ids=str)
def test_a_request_without_a_type(policy: Untyped, want: str) -> None:
    """What it may get is ordered by memory, and the policy says which one counts."""
    cards = Cards(table=CardTable(untyped=policy, cards=SITE.cards), catalogue={"h100-80gb": 79 * GIB})
    choice = cards.choose(a_submission(partition="any"))
    assert labels(choice) == ["a100-40", "h100", "a100-80"]
    assert card_of(choice).label == want


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({}, ["h100"]),
        ({"partition": "a100"}, ["a100-40", "a100-80"]),
        ({"partition": "a100,h100"}, ["a100-40", "h100", "a100-80"]),
        ({"partition": "any", "features": "hopper"}, ["h100"]),
        ({"partition": "any", "features": "hopper|ampere"}, ["a100-40", "h100", "a100-80"]),
        ({"partition": "any", "features": "[hopper&gpu80g]"}, ["h100"]),
        ({"partition": "any", "req_nodes": "a1"}, ["a100-40", "a100-80"]),
        ({"partition": "any", "exc_nodes": "a[1-9]"}, ["h100"]),
        ({"partition": "any", "exc_nodes": "h1"}, ["a100-40", "h100", "a100-80"]),
        ({"partition": "old"}, ["v"]),
    ],
    ids=str,
)
def test_where_it_may_run(fields: dict[str, object], want: list[str]) -> None:
    """Partitions, features and nodes leave out what the job cannot get."""
    choice = Cards(table=SITE, catalogue={"h100-80gb": 79 * GIB}).choose(submission_of({"tres_per_node": "gres:gpu:1", **fields}))
    assert labels(choice) == ([""] if want == ["v"] else want), choice.doubt


def test_nodes_that_are_too_small_are_left_out() -> None:
    """Sixteen GPUs a node are on none, eight on those with eight, of whatever types."""
    cards = Cards(table=SITE, catalogue={"h100-80gb": 79 * GIB})
    assert labels(cards.choose(a_submission("gres:gpu:8", partition="any"))) == ["a100-40", "h100", "a100-80"]
    smaller = CardTable(cards=(Row(type="t4", nodes="t[1-9]", count=4, gpu="t4-16gb"), *SITE.cards))
    assert labels(Cards(table=smaller).choose(a_submission("gres:gpu:h100:8"))) == ["h100"]
    assert "t4" not in labels(Cards(table=smaller).choose(a_submission("gres:gpu:8", partition="any")))


def test_one_unknown_card_among_several_makes_all_doubtful() -> None:
    """A job that may land on a card that nobody knows is not judged on the others."""
    choice = Cards(table=SITE).choose(a_submission(partition="odd,h100"))
    assert choice.card is None
    assert "kraken" in choice.doubt


def test_cards_of_several_types_at_once() -> None:
    """A job that gets both runs on both, whatever the policy says of one."""
    cards = Cards(table=CardTable(untyped=Untyped.best, cards=SITE.cards))
    assert card_of(cards.choose(a_submission("gres:gpu:a100-40:1,gres:gpu:a100-80:1", partition="a100"))).label == "a100-40"


def test_the_first_row_holds() -> None:
    """A person's row above those that were found: for a type everywhere, for some nodes, or in one partition."""
    found = Row(type="h100", nodes="h[1-4]", partitions=("p", "q"), count=8, memory_bytes=79 * GIB, source="agents")
    for own, asked, want in [
        (Row(type="h100", memory_bytes=90 * GIB), "p", [90]),
        (Row(type="h100", nodes="h[1-8]", memory_bytes=90 * GIB), "p", [90]),
        (Row(type="h100", nodes="h1", memory_bytes=90 * GIB), "p", [79, 90]),
        (Row(type="h100", partitions=("p",), memory_bytes=90 * GIB), "p", [90]),
        (Row(type="h100", partitions=("p",), memory_bytes=90 * GIB), "q", [79]),
        (Row(type="h100", partitions=("p",), memory_bytes=90 * GIB), "p,q", [79, 90]),
        (Row(type="h100", partitions=("p",), memory_bytes=90 * GIB), "", [79, 90]),
    ]:
        choice = Cards(table=CardTable(cards=(own, found))).choose(a_submission("gres:gpu:h100:1", partition=asked))
        assert [card.memory_bytes // GIB for card in choice.cards] == want, (own, asked)


def test_a_row_without_a_place_is_no_place() -> None:
    """How much memory a type has is no reason to think that a request without a type may get it."""
    table = CardTable(default_partition="h100", cards=(Row(type="kraken", memory_bytes=GIB), *SITE.cards))
    cards = Cards(table=table)
    assert labels(cards.choose(a_submission())) == ["h100"]
    assert card_of(cards.choose(a_submission("gres:gpu:kraken:1"))).memory_bytes == GIB
    assert card_of(cards.choose(a_submission(partition="odd"))) == Card(memory_bytes=GIB, label="kraken", source="admin")
    alone = Cards(table=CardTable(cards=(Row(type="x", memory_bytes=2), Row(type="y", memory_bytes=1))))
    assert labels(alone.choose(a_submission())) == ["y", "x"]


def test_a_controller_does_not_wait_for_it() -> None:
    """Of a cluster of 6,000 nodes in 300 kinds, and a request that names more nodes than there are."""
    rows = [
        Row(type=f"t{i % 10}", nodes=f"n[{i * 20}-{i * 20 + 19}]", partitions=("all",), features=("x",), count=8, memory_bytes=i + 1)
        for i in range(300)
    ]
    cards, many = Cards(table=CardTable(cards=tuple(rows))), "n[1-999999999]"
    for request in ({}, {"features": "x|y"}, {"req_nodes": many}, {"exc_nodes": many}, {"req_nodes": "n[0-99]", "exc_nodes": "n[50-99]"}):
        submission = submission_of({"tres_per_node": "gres:gpu:1", **request})
        cards.choose(submission)
        times = []
        for _ in range(5):
            began = time.process_time()
            choice = cards.choose(submission)
            times.append(time.process_time() - began)
        assert min(times) < 0.025, (request, times)
        assert len(choice.cards) == (3 if "n[0-99]" in request.values() else 300)


def test_the_least_card_that_holds_a_job() -> None:
    """For pinning: not the largest one, which others need more."""
    cards = Cards(table=CardTable(untyped=Untyped.pin, cards=SITE.cards), catalogue={"h100-80gb": 79 * GIB})
    choice = cards.choose(a_submission(partition="any"))
    assert [getattr(cards.least_that_holds(choice, need * GIB), "label", None) for need in (10, 40, 41, 80, 81)] == [
        "a100-40",
        "a100-40",
        "h100",
        "a100-80",
        None,
    ]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"tres_per_node": "gres:gpu:2"}, {"tres_per_node": "gres:gpu:h100:2"}),
        ({"tres_per_node": "gres:gpu"}, {"tres_per_node": "gres:gpu:h100"}),
        ({"tres_per_task": "cpu=4,gres/gpu=1", "num_tasks": 2}, {"tres_per_task": "cpu=4,gres/gpu:h100=1"}),
        ({"tres_per_job": "gres/gpu:8", "tres_per_node": "gres/gpu:4,gres/nic:1"},
         {"tres_per_job": "gres/gpu:h100:8", "tres_per_node": "gres/gpu:h100:4,gres/nic:1"}),
        ({"gres": "gpu:2"}, {"tres_per_node": "gpu:h100:2"}),
        ({"tres_per_node": "gres:gpu:a100:2"}, {}),
        ({"tres_per_node": "gres:shard:2"}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_a_request_is_pinned_to_a_type(fields: dict[str, object], want: dict[str, str]) -> None:
    """In the release's own spelling; what has a type is left alone. The result asks for that type."""
    changed = pinned(submission_of(fields), Card(label="h100"))
    assert changed == want
    if want:
        assert submission_of({**fields, **changed}).types == ("h100",)
    assert pinned(submission_of(fields), Card(name="h100-80gb")) == {}
