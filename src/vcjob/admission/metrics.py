"""How many reviews there were and how they ended, for Prometheus.

Counted where prometheus-client is installed (the extra ``operator``); without it nothing is.
"""

import importlib
from typing import Any

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts of one webhook."""

    def __init__(self) -> None:
        self._registry: Any = None
        try:
            library = importlib.import_module("prometheus_client")
        except ImportError:
            return
        library.disable_created_metrics()
        self._library = library
        self._registry = library.CollectorRegistry()
        self._reviews = library.Counter(
            "vcjob_webhook_reviews",
            "Answers by path and result: allowed, denied, refused for what is no review or late, "
            "or failed by a fault of the webhook.",
            ("path", "result"),
            registry=self._registry,
        )
        self._seconds = library.Histogram(
            "vcjob_webhook_review_seconds",
            "How long answers took, from when the whole question was there.",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def count(self, path: str, result: str, seconds: float | None = None) -> None:
        """One answer more; ``seconds`` is how long it took, None if there was no review."""
        if self._registry is not None:
            self._reviews.labels(path, result).inc()
            if seconds is not None:
                self._seconds.observe(seconds)

    def text(self) -> bytes | None:
        """What Prometheus reads; None where nothing is counted."""
        if self._registry is None:
            return None
        counted: bytes = self._library.generate_latest(self._registry)
        return counted
