"""What Prometheus reads of a webhook."""

import importlib
from typing import Any

import pytest

from vcjob.admission.metrics import Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    text = metrics.text()
    assert text is not None
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_answers_are_counted_and_only_reviews_have_a_time() -> None:
    pytest.importorskip("prometheus_client")
    metrics = Metrics()
    metrics.count("/jobs/validate", "allowed", 0.02)
    metrics.count("/jobs/validate", "denied", 3.0)
    metrics.count("/jobs/validate", "refused")
    counted = samples(metrics)
    for result in ("allowed", "denied", "refused"):
        name = f'vcjob_webhook_reviews_total{{path="/jobs/validate",result="{result}"}}'
        assert counted[name] == 1
    assert counted["vcjob_webhook_review_seconds_count"] == 2
    assert counted["vcjob_webhook_review_seconds_sum"] == pytest.approx(3.02)
    assert counted['vcjob_webhook_review_seconds_bucket{le="0.025"}'] == 1


def test_two_webhooks_of_one_process_count_apart() -> None:
    pytest.importorskip("prometheus_client")
    one, other = Metrics(), Metrics()
    one.count("/jobs/mutate", "allowed", 0.1)
    assert samples(other)["vcjob_webhook_review_seconds_count"] == 0


def test_without_the_library_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *_: Any) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    metrics = Metrics()
    metrics.count("/jobs/mutate", "allowed", 0.1)
    assert metrics.text() is None
