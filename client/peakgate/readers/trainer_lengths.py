"""How long a Trainer script's sequences are, and whether they are padded.

Sources: transformers examples/pytorch (each script's DataTrainingArguments and its preprocessing: group_texts fills blocks, the others
pad or truncate); TRL, FastChat and peft examples for further names.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.readers.convert import positive
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

LENGTH, TARGET, PACKED, KIND = "batch.sequence_length", "batch.target_length", "batch.packed", "batch.sequence_length_is"

NAMES = (
    "max_seq_length",
    "block_size",
    "max_source_length",
    "model_max_length",
    "max_length",
    "max_seq_len",
    "seq_length",
    "sequence_length",
    "seq_len",
    "cutoff_len",
    "context_length",
    "max_input_length",
    "max_len",
    "context_size",
    "n_ctx",
)
TARGETS = ("max_target_length", "target_length")
FILLED = ("block_size",)
"""Names of blocks that are filled with text."""


@dataclass(frozen=True, slots=True)
class Script:
    """An example script: its default lengths (0: none), and whether it fills its sequences."""

    length: int = 0
    target: int = 0
    packed: bool = False


SCRIPTS = {
    "run_clm": Script(1024, packed=True),
    "run_fim": Script(1024, packed=True),
    "run_mlm": Script(512, packed=True),
    "run_plm": Script(512, packed=True),
    "run_glue": Script(128),
    "run_xnli": Script(128),
    "run_classification": Script(128),
    "run_text_classification": Script(128),
    "run_qa": Script(384),
    "run_squad": Script(384),
    "run_qa_beam_search": Script(384),
    "run_seq2seq_qa": Script(384, 30),
    "run_summarization": Script(1024, 128),
    "run_translation": Script(1024, 128),
    "run_swag": Script(),
    "run_ner": Script(),
    "run_pos": Script(),
}
"""By the script's name without `_no_trainer`."""


def script_of(program: str) -> tuple[str, Script | None]:
    """The example script by its file's name."""
    name = program.rpartition(".")[0] if program.endswith(".py") else program.rpartition(".")[2]
    name = name.removesuffix("_no_trainer")
    return name, SCRIPTS.get(name)


def state_lengths(settings: Settings, reading: Reading, program: str) -> None:
    """The sequence, the target, and whether batches carry padding."""
    name, script = script_of(program)
    known = script or Script()
    stated = _summed(settings) or _first(settings, NAMES)
    target = _first(settings, ("max_answer_length",) if name == "run_seq2seq_qa" else TARGETS)
    if stated is not None:
        reading.state(LENGTH, int(str(stated.value)), stated.place)
    elif known.length:
        reading.default(LENGTH, known.length, f"{name}.py")
    if target is not None:
        reading.state(TARGET, int(str(target.value)), target.place)
    elif known.target:
        reading.default(TARGET, known.target, f"{name}.py")
    if stated is not None or known.length or script is not None:
        _padding(settings, reading, known, _by_name(settings))


def _by_name(settings: Settings) -> bool:
    return any(settings(name) is not None for name in FILLED)


def _first(settings: Settings, names: tuple[str, ...]) -> Stated | None:
    """The first name with a size."""
    for name in names:
        stated = settings(name)
        try:
            size = positive(stated) if stated is not None else None
        except ValueError:
            size = None
        if stated is not None and size is not None:
            return Stated(size, stated.place)
    return None


def _summed(settings: Settings) -> Stated | None:
    """qlora.py: a prompt and its answer, each with a limit of its own."""
    source, target = _first(settings, ("source_max_len",)), _first(settings, ("target_max_len",))
    if source is None or target is None:
        return None
    return Stated(int(str(source.value)) + int(str(target.value)), source.place)


def _padding(settings: Settings, reading: Reading, script: Script, filled: bool) -> None:  # noqa: FBT001 - a value
    packing = settings.first("packing", "sample_packing", "pack_sequences")
    by_line = switched_on(settings, "line_by_line")
    if packing is not None and (on := truth(packing)) is not None:
        _state(reading, packed=on, place=packing.place)
    elif place := switched_on(settings, "padding_free"):
        reading.state(PACKED, value=True, place=place)
        reading.state(KIND, "cap", place)
    elif by_line is not None:
        _state(reading, packed=False, place=by_line)
    else:
        packed = script.packed or filled
        whose = "scripts that fill blocks with text" if packed else "scripts that pad or truncate their examples"
        reading.default(PACKED, packed, whose)
        reading.default(KIND, "exact" if packed else "cap", whose)


def _state(reading: Reading, *, packed: bool, place: Place) -> None:
    reading.state(PACKED, packed, place)
    reading.state(KIND, "exact" if packed else "cap", place)
