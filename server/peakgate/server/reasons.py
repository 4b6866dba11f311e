"""The sentences of an answer: the reason of a verdict, and the warnings. Every figure carries its unit; 1 GB is 1e9 bytes."""

from __future__ import annotations

from peakgate.calibration.trust import AGENTS_SILENT, CLAMPED_TOO_OFTEN, GROUP_STALE, MISSES_TOO_OFTEN, TOO_MUCH_KEPT_OUT
from peakgate.memory.change import Value
from peakgate.memory.prediction import LedgerLine
from peakgate.server.assess import Assessment
from peakgate.server.decide import Decision, Ground, Verdict, retries
from peakgate.server.memory import Capacity, Changes
from peakgate.server.suggest import Advice

DISTRUST = {
    MISSES_TOO_OFTEN: "of the newest jobs more than three times as many passed their bound as it had promised",
    TOO_MUCH_KEPT_OUT: "more than a twentieth of what was observed in a day had to be kept out",
    CLAMPED_TOO_OFTEN: "of the newest jobs more than a tenth have a bound that meets its limit",
    AGENTS_SILENT: "more than a fifth of the nodes have reported nothing for an hour though jobs run on them",
    GROUP_STALE: "no job of this kind was observed for 30 days",
}
"""What a person is told of each reason not to trust the calibration."""


def gigabytes(size_bytes: int) -> str:
    """A size for people."""
    return f"{size_bytes / 1e9:.1f} GB"


Sought = tuple[Advice, ...] | None
"""Changes, or None where none was looked for."""


def reason(decision: Decision, assessment: Assessment, advice: Sought) -> str:
    """One line that a submitter can act on. A rejection begins with the ledger category that is too large."""
    texts = {
        Ground.FITS: _fits,
        Ground.NO_GPU: _no_gpu,
        Ground.INCOMPLETE: _incomplete,
        Ground.STATES_TOO_LARGE: _states_too_large,
        Ground.TOO_LARGE: _too_large,
        Ground.HOST_TOO_LARGE: _host_too_large,
        Ground.FIELD_DECIDES: _field_decides,
    }
    return texts[decision.ground](decision, assessment, advice)


def warnings(decision: Decision, assessment: Assessment) -> tuple[str, ...]:
    """What a submitter should know beside the verdict. That a job runs with retries is said of a job that is admitted only."""
    found = assessment.prediction.warnings
    if assessment.prediction.host_bytes and not assessment.host_memory_bytes:
        found += (_unchecked_host(assessment),)
    if assessment.distrust:
        found += (_distrust(assessment),)
    if decision.verdict is Verdict.ADMIT and retries(assessment):
        found += (_retries(assessment),)
    return found


def _unchecked_host(assessment: Assessment) -> str:
    return (
        f"what is offloaded takes {gigabytes(assessment.prediction.host_bytes)} of a node's RAM; whether it has that much was not checked: "
        "state node.host_memory_bytes"
    )


def _distrust(assessment: Assessment) -> str:
    why = "; ".join(DISTRUST[each] for each in assessment.distrust)
    return f"the margin is a wide one, because what was learned is not trusted ({' '.join(assessment.distrust)}): {why}"


def _retries(assessment: Assessment) -> str:
    prediction = assessment.prediction
    return (
        f"the caching allocator would take {gigabytes(prediction.device_bytes)} and the card has {gigabytes(assessment.usable_bytes)}: "
        "the job runs, but the allocator frees its cache and retries, which slows it down; "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids most of it"
    )


def largest_category(ledger: tuple[LedgerLine, ...]) -> tuple[str, int]:
    """The ledger category that takes most at the peak, and its bytes. Raises ValueError for an empty ledger."""
    sizes: dict[str, int] = {}
    for line in ledger:
        sizes[line.category] = sizes.get(line.category, 0) + line.bytes
    category = max(sizes, key=lambda name: sizes[name])
    return category, sizes[category]


def _card(assessment: Assessment) -> str:
    return f"the {gigabytes(assessment.usable_bytes)} usable of {card_words(assessment.capacity)}"


def card_words(capacity: Capacity | None) -> str:
    """What the job runs on."""
    if capacity is None or not capacity.gpu:
        return "the card"
    return f"a share of {capacity.gpu}" if capacity.is_part else capacity.gpu


def _need(assessment: Assessment) -> str:
    required, bound = gigabytes(assessment.prediction.required_bytes), gigabytes(assessment.bound_bytes)
    return f"needs {required}" if required == bound else f"needs {required}, {bound} with its margin"


def _fits(_decision: Decision, assessment: Assessment, _advice: Sought) -> str:
    phase = assessment.prediction.peak_phase
    return f"fits: the worst GPU {_need(assessment)} in {phase}; that is within {_card(assessment)}"


def _no_gpu(_decision: Decision, assessment: Assessment, _advice: Sought) -> str:
    incomplete = f" ({'; '.join(assessment.prediction.undecided)})" if assessment.prediction.undecided else ""
    return f"gpu: no GPU is stated; the worst GPU {_need(assessment)}{incomplete}; state gpu.type or gpu.memory_bytes"


def _incomplete(_decision: Decision, assessment: Assessment, _advice: Sought) -> str:
    states = gigabytes(assessment.prediction.states_bytes)
    known = f"what can be computed needs {gigabytes(assessment.bound_bytes)}, {states} of it model states, against {_card(assessment)}"
    return f"{'; '.join(assessment.prediction.undecided)}; {known}"


def _states_too_large(_decision: Decision, assessment: Assessment, advice: Sought) -> str:
    category, size_bytes = largest_category(assessment.prediction.ledger)
    states = gigabytes(assessment.prediction.states_bytes)
    return f"{category}: {gigabytes(size_bytes)}; the model states alone need {states} and pass {_card(assessment)}{_remedy(advice)}"


def _too_large(_decision: Decision, assessment: Assessment, advice: Sought) -> str:
    category, size_bytes = largest_category(assessment.prediction.ledger)
    phase = assessment.prediction.peak_phase
    return (
        f"{category}: {gigabytes(size_bytes)} at the peak in {phase}; the worst GPU {_need(assessment)} "
        f"and that passes {_card(assessment)}{_remedy(advice)}"
    )


def _host_too_large(_decision: Decision, assessment: Assessment, advice: Sought) -> str:
    category = assessment.offloaded[0] if assessment.offloaded else largest_category(assessment.prediction.ledger)[0]
    also = f" with {' and '.join(assessment.offloaded[1:])}" if len(assessment.offloaded) > 1 else ""
    return f"{category}: offloaded{also} they do not fit the node's RAM: {_host_need(assessment)}{_remedy(advice)}"


def _host_need(assessment: Assessment) -> str:
    needed, stated = gigabytes(assessment.prediction.host_bytes), gigabytes(assessment.host_memory_bytes)
    return f"a node needs {needed} of host memory and has {stated} (node.host_memory_bytes)"


def _misfit(assessment: Assessment) -> str:
    if assessment.card_fits:
        return _host_need(assessment)
    return f"the worst GPU {_need(assessment)} and does not fit {_card(assessment)}"


def _remedy(advice: Sought) -> str:
    if advice is None:
        return ""
    best = next((each for each in advice if each.fits), None)
    if best is None:
        return "; no change on the list makes it fit on these GPUs: peakgate suggest names the nearest, more GPUs or a larger one"
    return f"; {best.title} ({_assignments(best.changes)}) makes it fit with {gigabytes(best.bound_bytes)}"


def _field_decides(decision: Decision, assessment: Assessment, _advice: Sought) -> str:
    names = " and ".join(path for path, _ in decision.deciding)
    with_favourable = gigabytes(decision.favourable.bound_bytes) if decision.favourable is not None else ""
    verb = "is not stated and decides" if len(decision.deciding) == 1 else "are not stated and decide together"
    return (
        f"{names} {verb}: as assumed {_misfit(assessment)}; "
        f"with {_assignments(decision.deciding)} it needs {with_favourable} and fits; state {names}"
    )


def _assignments(changes: Changes) -> str:
    return ", ".join(f"{path}={plain(value)}" for path, value in changes)


def plain(value: Value) -> str:
    """A value as a document writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
