"""What agents and imports say of a peak is what the service takes: a word that it does not know is a row that it refuses."""

from __future__ import annotations

from peakgate.agent.peaks import SOURCES as AGENT_SOURCES
from peakgate.agent.peaks import Flag
from peakgate.client.imports.job import FLAGS as IMPORT_FLAGS
from peakgate.client.imports.prometheus import SOURCE as PROMETHEUS
from peakgate.client.imports.sacct import SOURCE as SLURM
from peakgate.client.imports.slurm_words import EVENT_OF_STATE
from peakgate.server.classing import OUT_OF_MEMORY
from peakgate.server.observe import REASONS
from peakgate.server.simulation.history import CAME_TO_ITS_END
from peakgate.server.store.events import HEAVIEST_FIRST
from peakgate.server.store.records import EVENTS, FLAGS, IMPORTED, SOURCES, TERMINAL_EVENTS
from peakgate.server.tries import UNSEEN_ENDS


def test_every_source_is_known() -> None:
    """The service knows the agent's and the imports', and no other."""
    assert {SLURM, PROMETHEUS} == set(IMPORTED)
    assert {*AGENT_SOURCES, *IMPORTED} == set(SOURCES)


def test_every_flag_is_known() -> None:
    """The service knows the agent's and the imports', and no other."""
    assert {word for flag in Flag for word in flag.words} | set(IMPORT_FLAGS) == set(FLAGS)


def test_every_end_is_known() -> None:
    """A state of Slurm is an end that the service knows, and of each two events of a job it knows which one counts."""
    assert set(EVENT_OF_STATE.values()) <= set(TERMINAL_EVENTS)
    assert sorted(HEAVIEST_FIRST) == sorted(EVENTS)


def test_every_reason_that_is_looked_for_is_given() -> None:
    """Who asks why an observation is no exact one knows the words of the rules."""
    assert {*UNSEEN_ENDS, *CAME_TO_ITS_END, OUT_OF_MEMORY} <= set(REASONS)
