"""One training or several under one attempt."""

from __future__ import annotations

from dataclasses import replace

from peakgate.agent.launch import Place
from peakgate.agent.proc import ProcessId
from peakgate.agent.trainings import MAX_ATTEMPTS, MAX_TRAININGS, Trainings

ATTEMPT = ("alpha", "402", 0, "predictions/p1")
OTHER = ("alpha", "402", 0, "predictions/p2")


def a_process(pid: int, start_ticks: int = 100) -> ProcessId:
    """A process of a job."""
    return ProcessId(pid, start_ticks)


def a_place(root: int, *, step: str = "", task: str = "", launcher: int | None = None) -> Place:
    """A place below the program `root`, which is its own launcher unless said otherwise."""
    return Place(step=step, task=task, root=ProcessId(root, 50), launcher=ProcessId(root if launcher is None else launcher, 50))


def join_all(*members: tuple[ProcessId, Place], trainings: Trainings | None = None) -> list[str]:
    """The names of the trainings that these join one after the other, all alive."""
    known = trainings or Trainings()
    return [known.join(ATTEMPT, process, place) for process, place in members]


def test_the_first_training_has_no_name() -> None:
    """A job with one training has rows without a step, as before there were steps."""
    trainings = Trainings()
    assert join_all((a_process(7), a_place(3)), (a_process(8), a_place(3)), (a_process(7), a_place(3)), trainings=trainings) == ["", "", ""]
    assert not trainings.are_several(ATTEMPT)


def test_two_programs_of_one_step_are_two_trainings() -> None:
    """Side by side in one shell script: the later one is named by its first process."""
    trainings = Trainings()
    assert join_all((a_process(7), a_place(7)), (a_process(8), a_place(8)), trainings=trainings) == ["", "8"]
    assert trainings.are_several(ATTEMPT)
    assert not trainings.are_several(OTHER)


def test_two_steps_are_two_trainings() -> None:
    """The later one is named by its step, a second program in that step by step and process."""
    members = ((1, "batch"), (2, "0"), (3, "0"))
    assert join_all(*((a_process(pid), a_place(pid, step=step, task="0")) for pid, step in members)) == ["", "0", "0:3"]


def test_the_tasks_of_one_step_are_one_training() -> None:
    """srun starts one program a task; each may stand below a shell of its own."""
    trainings = Trainings()
    tasks = [(a_process(pid), a_place(pid, step="0", task=str(pid))) for pid in range(4)]
    assert join_all(*tasks, trainings=trainings) == [""] * 4
    assert not trainings.are_several(ATTEMPT)


def test_a_second_program_in_the_tasks_of_a_step_is_a_second_training() -> None:
    """Each task of the step runs a loop: the second round is one training again, with all its tasks."""
    rounds = [(a_process(10 * turn + task), a_place(10 * turn + task, step="0", task=str(task))) for turn in (1, 2) for task in (0, 1)]
    assert join_all(*rounds) == ["", "", "0:20", "0:20"]


def test_one_after_the_other_is_several() -> None:
    """A driver that starts a training, waits for its end and starts the next: they share the program, not the training."""
    trainings = Trainings()
    place = a_place(3, launcher=7)
    assert trainings.join(ATTEMPT, a_process(7, 100), place) == ""
    trainings.leave(ATTEMPT, a_process(7, 100))
    assert trainings.join(ATTEMPT, a_process(8, 200), replace(place, launcher=a_process(8, 200))) == "8"
    assert trainings.are_several(ATTEMPT)


def test_ranks_that_their_launcher_starts_anew_are_the_same_training() -> None:
    """torchrun restarts all ranks after a failure of one: it is the same job with the same peak."""
    trainings = Trainings()
    place = a_place(3, launcher=3)
    trainings.join(ATTEMPT, a_process(7, 100), place)
    trainings.leave(ATTEMPT, a_process(7, 100))
    assert trainings.join(ATTEMPT, a_process(8, 200), place) == ""
    assert not trainings.are_several(ATTEMPT)


def test_a_short_helper_before_the_main_process_is_no_training() -> None:
    """A program that asks the GPU in a child before it uses it itself started before that child."""
    trainings = Trainings()
    trainings.join(ATTEMPT, a_process(8, 200), a_place(7, launcher=8))
    trainings.leave(ATTEMPT, a_process(8, 200))
    assert trainings.join(ATTEMPT, a_process(7, 100), a_place(7)) == ""


def test_a_helper_beside_the_main_process_is_no_training() -> None:
    """What a program starts while it is on a GPU belongs to it."""
    trainings = Trainings()
    trainings.join(ATTEMPT, a_process(7, 100), a_place(7))
    assert trainings.join(ATTEMPT, a_process(8, 200), a_place(7, launcher=8)) == ""


def test_an_attempt_with_a_contradiction_counts_as_several() -> None:
    """The scheduler and the process name different predictions: which one was trained is not known."""
    trainings = Trainings()
    trainings.contradict(ATTEMPT)
    assert (trainings.are_several(ATTEMPT), trainings.are_several(OTHER)) == (True, False)


def test_what_is_remembered_is_bounded() -> None:
    """A node that runs for years forgets the attempts it saw longest ago; a sweep of thousands keeps its first and its latest."""
    trainings = Trainings()
    for number in range(MAX_ATTEMPTS + 10):
        trainings.join(("alpha", str(number), 0, ""), a_process(7), a_place(7))
    assert len(trainings._known) == MAX_ATTEMPTS
    for pid in range(MAX_TRAININGS + 10):
        trainings.join(ATTEMPT, a_process(pid), a_place(pid))
    assert len(trainings._known[ATTEMPT]) == MAX_TRAININGS
    assert trainings.join(ATTEMPT, a_process(0), a_place(0)) == ""
    assert trainings.are_several(ATTEMPT)
