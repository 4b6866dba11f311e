"""More AdmissionReviews with what has to become of each: a job's own word for its GPU, updates, launches that are not surely one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from tests.admission_reviews import (
    FITS,
    LARGE,
    MODES,
    OWNER,
    SPEC,
    T4,
    TOO_LARGE,
    TRAIN,
    Case,
    a_container,
    a_review,
    a_template,
    a_workload,
    launching,
    stating,
)


def further_cases() -> list[Case]:
    """All of them."""
    return [*_by_own_gpu(), *_by_update(), *_by_image(), *_that_train_nothing(), *_by_further_launch()]


SIZED = LARGE.replace("batch_size 4 ", "batch_size $BS ")
"""Its micro-batch is a variable's."""


def _by_image() -> Iterator[Case]:
    """Variables that nothing at hand sets: an image may, so that what rests on them is no ground to deny."""
    scripts = {
        "a default": f"BS=${{BS:-4}}; {SIZED}",
        "a default in a flag": LARGE.replace("batch_size 4 ", "batch_size ${BS:-4} "),
        "a test": f'BS=4; [ -n "$SMALL" ] && BS=1; {SIZED}',
        "a test of what is unset": f'[ -z "$BS" ] && BS=4; {SIZED}',
        "a sum": f"BS=$(( ${{HALF:-2}} * 2 )); {SIZED}",
        "a branch": f'if [ "${{SIZE:-large}}" = large ]; then {LARGE}; else {TRAIN}; fi',
        "a case": f'case "${{SIZE:-large}}" in large) {LARGE};; *) {TRAIN};; esac',
        "further flags": f"{LARGE} $EXTRA_ARGS",
        "what runs in its place": f'[ -n "$DEBUG" ] && exec {TRAIN}; {LARGE}',
        "a trap": f'trap "exec {TRAIN}" ERR; {LARGE}',
    }
    for name, script in scripts.items():
        review = a_review(launching("bash", "-c", script), namespace=MODES["enforce"])
        yield Case(name=f"{name} that may be another", review=review, outcome="would_deny", verdict="reject", says="a part of the launch")
    surely = {
        "a default of what no field says": f"{LARGE} --output_dir ${{OUT:-/out}}",
        "a test of what no field says": f'[ -z "$HF_HOME" ] && export HF_HOME=/cache; {LARGE}',
        "a port": LARGE.replace("torchrun", "torchrun --master-port ${MASTER_PORT:-29500}"),
        "a trap that starts nothing": f'trap "kill 0" ERR EXIT; {LARGE}',
    }
    for name, script in surely.items():
        review = a_review(launching("bash", "-c", script), namespace=MODES["enforce"])
        yield Case(name=name, review=review, outcome="denied", verdict="reject", says="too few")
    container = a_container(command=["bash", "-c", f"BS=${{BS:-1}}; {SIZED}"], env={"BS": "4"})
    said = a_review(a_workload(template=a_template(product=T4, container=container)), namespace=MODES["enforce"])
    yield Case(name="a default that the manifest overrides", review=said, outcome="denied", verdict="reject", says="too few")


def _that_train_nothing() -> Iterator[Case]:
    enforced = MODES["enforce"]
    for script in (f'CUDA_VISIBLE_DEVICES="" {LARGE}', f"export CUDA_VISIBLE_DEVICES=-1; {LARGE}", f"{LARGE} --help", f"{LARGE} -h --bf16"):
        review = a_review(launching("bash", "-c", script), namespace=enforced)
        yield Case(name=script.replace(LARGE, "it"), review=review, outcome="skipped")
    container = a_container(command=LARGE.split(), env={"CUDA_VISIBLE_DEVICES": ""})
    blind = a_review(a_workload(template=a_template(product=T4, container=container)), namespace=enforced)
    yield Case(name="no GPU by env", review=blind, outcome="skipped")
    none = launching(*LARGE.split())
    none["spec"]["parallelism"] = 0
    yield Case(name="no pod", review=a_review(none, namespace=enforced), outcome="skipped")
    unknown = a_review(launching("bash", "-c", f"{LARGE} --help; ./train --batch-size 4"), namespace=enforced)
    yield Case(name="an unknown trainer behind a help", review=unknown, outcome="unread", says="./train")
    broken = a_review(launching(*f"{LARGE} --help".split(), stated="{model: ["), namespace=enforced)
    yield Case(name="a spec that is none beside a help", review=broken, outcome="unread", says=SPEC)
    seen = launching("bash", "-c", f"CUDA_VISIBLE_DEVICES=0 {LARGE}")
    yield Case(name="one GPU is visible", review=a_review(seen, namespace=enforced), outcome="denied", verdict="reject", says="too few")
    valued = a_review(launching(*f"{LARGE} --version 2".split()), namespace=enforced)
    yield Case(name="a version of something", review=valued, outcome="denied", verdict="reject", says="too few")


def _by_further_launch() -> Iterator[Case]:
    """Of several launches that surely run, the one that is hardest to fit decides."""
    enforced = MODES["enforce"]
    for script in (f"{TRAIN}; {LARGE}", f"{TRAIN} && {LARGE}", f"{TRAIN} & {LARGE} & wait"):
        review, says = a_review(launching("bash", "-c", script), namespace=enforced), "launch 2 of 2: refused; more: "
        name = script.replace(LARGE, "it").replace(TRAIN, "another")
        yield Case(name=name, review=review, outcome="denied", verdict="reject", says=says)
    maybe = {
        "behind a branch that may end it": f"{TRAIN}; if [ -f /data/done ]; then exit 0; fi; {LARGE}",
        "behind exec": f"exec {TRAIN}; {LARGE}",
        "in a branch": f"{TRAIN}; if [ -f /data/more ]; then {LARGE}; fi",
        "when the first fails": f"{TRAIN} || {LARGE}",
    }
    for name, script in maybe.items():
        review = a_review(launching("bash", "-c", script), namespace=enforced)
        yield Case(name=f"a second launch {name}", review=review, outcome="allowed", verdict="admit")
    fits = a_review(launching("bash", "-c", f"{TRAIN}; {TRAIN} --bf16 False"), namespace=enforced)
    yield Case(name="two that fit", review=fits, outcome="allowed", verdict="admit")


def _by_own_gpu() -> Iterator[Case]:
    enforced = MODES["enforce"]
    huge, h100 = {**TOO_LARGE, "gpu": {"memory_bytes": 10**15}}, {**FITS, "gpu": {"type": "h100-80gb"}}
    beside = a_review(stating("Job", huge, product=T4), namespace=enforced)
    says = "it states gpu.memory_bytes 1000000000000000, and gets Tesla-T4: judged on that"
    yield Case(name="a word for a larger GPU", review=beside, outcome="denied", verdict="reject", says=says)
    other = a_review(stating("Job", h100, product=T4))
    yield Case(name="a word for another GPU", review=other, outcome="allowed", verdict="admit", says="it states gpu.type h100-80gb")
    same = a_review(stating("Job", {**h100, "gpu": {"type": "H100"}}), namespace=enforced)
    yield Case(name="a word for the same GPU", review=same, outcome="allowed", verdict="admit")
    alone = a_review(stating("Job", huge, product=""), namespace=enforced)
    yield Case(name="a word where nothing is selected", review=alone, outcome="allowed", verdict="admit")


def _by_update() -> Iterator[Case]:
    enforced = MODES["enforce"]

    def updated(old: Mapping[str, Any], new: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        changed = copy.deepcopy(dict(new))
        changed["spec"] |= changes
        return a_review(changed, kind="CronJob", operation="UPDATE", namespace=enforced, old=old)

    small, large = stating("CronJob", FITS, product=T4), stating("CronJob", TOO_LARGE, product=T4)
    yield Case(name="a job that grew", review=updated(small, large), outcome="denied", verdict="reject", says="too few")
    yield Case(name="a job that shrank", review=updated(large, small), outcome="allowed", verdict="admit")
    yield Case(name="another schedule", review=updated(large, large, schedule="@hourly"), outcome="skipped")
    yield Case(name="suspended", review=updated(large, large, suspend=True), outcome="skipped")
    asleep = {**large, "spec": {**large["spec"], "suspend": True}}
    yield Case(name="resumed", review=updated(asleep, large, suspend=False), outcome="skipped")
    waking = updated({**small, "spec": {**small["spec"], "suspend": True}}, large)
    yield Case(name="resumed and grown", review=waking, outcome="denied", verdict="reject", says="too few")
    labelled = {**large, "metadata": {**large["metadata"], "labels": {"a": "b"}}}
    yield Case(name="another label", review=updated(large, labelled), outcome="skipped")
    named = copy.deepcopy(large)
    named["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"]["peakgate.io/prediction"] = "predictions/p1"
    yield Case(name="a prediction's name is lost", review=updated(named, large), outcome="skipped")
    owned = {**large, "metadata": {**large["metadata"], "ownerReferences": [OWNER]}}
    yield Case(name="an update of what a controller made", review=updated(small, owned), outcome="skipped")
