"""What an audit of the margin finds, in sentences: whether it can be trusted, why not, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peakgate.client.render.units import gb
from peakgate.v1.calibration_report_pb2 import CalibrationAudit, ReportCalibrationResponse

MOST_NAMED = 3
"""Groups that a sentence names; the table has all."""

_WORDS: dict[str, tuple[str, str]] = {
    "MISSES_TOO_OFTEN": (
        "of the newest 200 needs more than three times the promised share passed their bound",
        (
            "the bounds are wide ones until it has learned; look for what was upgraded (see the alarms), and if the rows themselves are "
            "wrong go back with `peakgate calibration rollback`"
        ),
    ),
    "COVERAGE_BELOW_PROMISE": (
        "in the last seven days fewer needs stayed within their bound than was promised, beyond chance",
        (
            "look at the groups that are marked and at the alarms; until it has learned, ask for more with PEAKGATE_COVERAGE or keep "
            "PEAKGATE_OPERATOR_RESERVE_BYTES free"
        ),
    ),
    "COVERAGE_WAS_BELOW_PROMISE": (
        "over the whole time fewer needs than promised stayed within their bound, but not in its last seven days",
        "nothing now: it has learned since; the plot over time shows when it was",
    ),
    "TOO_MUCH_KEPT_OUT": (
        "more than a twentieth of a day's attempts could not be learned from",
        "see why under kept out: a wrong unit, shared GPUs and documents that are not of the job that ran are repaired where they are made",
    ),
    "GROUP_STALE": (
        "no need was seen for 30 days",
        "run a job of the group with an agent on its node",
    ),
    "CLAMPED_TOO_OFTEN": (
        "more than a tenth of the predictions met the limit of what a margin may be",
        "what lies outside the prediction is larger than a runtime can be: compare `peakgate jobs --observed` with what the jobs hold",
    ),
    "AGENTS_SILENT": (
        "more than a fifth of the nodes have not reported for an hour",
        "see why with `peakgate agent doctor` on one of them",
    ),
    "TOO_FEW_NEEDS": (
        "too few needs were seen",
        (
            "let agents report (`peakgate agent`), take in what Slurm or a Prometheus has recorded (`peakgate calibration import`), or "
            "look at a longer time with --since"
        ),
    ),
}
"""Reason word -> (why, what to do)."""

_TRUST = {
    "trusted": "The margin can be trusted",
    "distrusted": "The margin cannot be trusted now",
    "unknown": "Nobody can tell yet whether the margin can be trusted",
}


def percent(share: float) -> str:
    """A share: `95.3 %`; only all of it is 100 %, and only none 0 %."""
    shown = round(share * 100, 1)
    if shown in (0.0, 100.0):
        return f"{share * 100:.0f} %" if share in (0.0, 1.0) else ("< 0.1 %" if share < 0.5 else "> 99.9 %")
    return f"{shown:.1f} %"


def counted(number: int, noun: str) -> str:
    """`1 need`, `1,204 needs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def headline(report: ReportCalibrationResponse) -> str:
    """One sentence: whether it can be trusted, and the figures."""
    return f"{_TRUST.get(report.trust, report.trust)}: {coverage_finding(report.overall)}"


def coverage_finding(audit: CalibrationAudit) -> str:
    """`1,147 of 1,204 needs stayed within their bound: 95.3 % (93.9 % to 96.3 %); 95.6 % were promised`."""
    if not audit.needs:
        return "no need of a job was seen"
    held = f"{audit.needs - audit.misses:,} of {counted(audit.needs, 'need')} stayed within {'its' if audit.needs == 1 else 'their'} bound"
    interval = f"{percent(audit.coverage)} ({percent(audit.coverage_low)} to {percent(audit.coverage_high)})"
    promised = f"; {percent(audit.promised_coverage)} were promised" if audit.HasField("promised_coverage") else ""
    return f"{held}: {interval}{promised}"


def reasons(report: ReportCalibrationResponse) -> list[tuple[str, str]]:
    """(why, what to do) of each word, in sentences; a word that is not known here stands for itself."""
    found = [_WORDS.get(word, (word, "")) for word in report.trust_reasons]
    if "TOO_FEW_NEEDS" in report.trust_reasons and report.overall.needs:
        needed = f" to tell it from chance: {report.fewest_needs:,} would do if all stay within their bound"
        found = [(f"{why}{needed}" if why == _WORDS["TOO_FEW_NEEDS"][0] else why, advice) for why, advice in found]
    return found


def reason_text(word: str) -> str:
    """Why, of one word."""
    return _WORDS.get(word, (word, ""))[0]


def below_finding(groups: Iterable[CalibrationAudit]) -> str:
    """Which groups lie below what was promised; empty when none does."""
    below = [group for group in groups if group.below_promise]
    if not below:
        return ""
    names = ", ".join(group.group for group in below[:MOST_NAMED])
    more = f" and {len(below) - MOST_NAMED} more" if len(below) > MOST_NAMED else ""
    which = "One group lies" if len(below) == 1 else f"{len(below)} groups lie"
    return f"{which} below what was promised, beyond chance (the promise is over all jobs, not for each group): {names}{more}"


def overall_findings(report: ReportCalibrationResponse) -> list[str]:
    """What there is to say of all groups together."""
    overall = report.overall
    found = (
        waste_finding(overall),
        rejections_finding(overall),
        tries_finding(overall),
        labels_finding(overall),
        kept_out_finding(overall, report.quarantined_users),
    )
    return [each for each in found if each]


def rejections_finding(audit: CalibrationAudit) -> str:
    """What became of rejected jobs; empty without any."""
    found = audit.rejections
    if not (found.predictions or found.attempts):
        return ""
    told = f"{counted(found.predictions, 'job')} {'was' if found.predictions == 1 else 'were'} rejected"
    if not found.attempts:
        return f"{told}; no rejected job was seen to run all the same, so nobody can tell how many would have fitted"
    fitted = f"{found.false_rejections:,} needed no more than the card (rejected by mistake), {found.right_rejections:,} needed more"
    unknown = found.attempts - found.false_rejections - found.right_rejections
    rest = f", of {unknown:,} it is not known" if unknown else ""
    return f"{told}; {counted(found.attempts, 'rejected job')} ran all the same: {fitted}{rest}"


def tries_finding(audit: CalibrationAudit) -> str:
    """What came of the tries that were granted; empty without any."""
    tries = audit.tries
    if not tries.granted:
        return ""
    return (
        f"{counted(tries.granted, 'rejected job')} {'was' if tries.granted == 1 else 'were'} tried with leave: "
        f"{tries.fitted:,} fitted, {tries.oom:,} ran out of memory, of {tries.unknown:,} it is not known"
    )


def labels_finding(audit: CalibrationAudit) -> str:
    """What the needs rest on; empty without needs."""
    labels = audit.labels
    rows = labels.told_rows + labels.device_only_rows
    if not rows:
        return ""
    told = f"{percent(labels.told_rows / rows)} of the needs rest on the allocator's own statistics"
    told += ", the rest on the device's memory only" if labels.device_only_rows else ""
    greedy = f"; {counted(labels.greedy_rows, 'allocator')} held far more than was in use" if labels.greedy_rows else ""
    advice = "" if 2 * labels.told_rows >= rows else " (a cache looks like a need: use peakgate.client.torch in trainings)"
    return told + greedy + advice


def kept_out_finding(audit: CalibrationAudit, users: Sequence[str]) -> str:
    """What was kept out; empty when nothing was."""
    rows = sum(each.rows for each in audit.kept_out)
    if not rows:
        return ""
    why = ", ".join(f"{each.reason} {each.rows:,}" for each in audit.kept_out)
    named = f" ({', '.join(user or 'nobody in particular' for user in users)})" if users else ""
    quarantined = f"; {counted(audit.quarantined_users, 'user')} quarantined{named}" if audit.quarantined_users else ""
    return f"{counted(rows, 'attempt')} kept out: {why}{quarantined}"


def waste_finding(audit: CalibrationAudit) -> str:
    """How far bounds lie above needs; empty without a known need."""
    if not audit.HasField("mean_waste_bytes"):
        return ""
    size = audit.mean_waste_bytes
    return f"Bounds lie {gb(round(abs(size)))} {'below' if size < 0 else 'above'} the need on average"


def signed_gb(size_bytes: float) -> str:
    """A size that may be below zero."""
    return f"-{gb(round(-size_bytes))}" if size_bytes < 0 else gb(round(size_bytes))
