"""``audit --watch``: says what is wrong with a cluster when it is, and what has passed, for weeks.

Metrics are served to Prometheus, on loopback unless an address is named.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import NoReturn
from urllib.parse import urlsplit

import prometheus_client as prometheus
import typer

from conformance.cli.output import print_progress, printable
from conformance.compare.audit.changing import Auditor
from conformance.compare.audit.once import Finding
from conformance.targets.cluster.live import LiveCluster
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_api
from kube.base.errors import ExitCode, UsageError
from kube.base.signals import interrupted_by_signals

_LOOPBACK = "127.0.0.1"
_LONGEST = 5.0
"""Seconds without a look at whether watches are interrupted."""

_BURST = 0.05
"""Seconds for which changes are gathered before they are judged."""


class Metrics:
    """What Prometheus is told of an audit."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._rules: set[str] = set()
        self._findings = self._gauge("findings", "What is wrong now, by rule.", "rule")
        self._allocated = self._gauge("allocated_claims", "Claims that have devices.")
        self._interrupted = self._gauge(
            "watch_interrupted", "1 while a resource is not followed.", "resource"
        )
        self._seconds = prometheus.Histogram(
            "dra_audit_judging_seconds",
            "How long it took to judge what had changed.",
            registry=self.registry,
        )
        prometheus.ProcessCollector(registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> prometheus.Gauge:
        return prometheus.Gauge(f"dra_audit_{name}", text, labels, registry=self.registry)

    def note_judging(self, auditor: Auditor, seconds: float) -> None:
        """Note what is wrong now, and how long it took to judge it."""
        counts = Counter(item.rule for item in auditor.findings)
        self._rules |= counts.keys()
        for rule in self._rules:  # one that has passed is 0
            self._findings.labels(rule).set(counts[rule])
        self._allocated.set(auditor.allocated)
        self._seconds.observe(seconds)

    def note_watch(self, resource: str, *, interrupted: bool) -> None:
        self._interrupted.labels(resource).set(interrupted)

    @contextmanager
    def serve(self, address: str) -> Iterator[None]:
        """Serve them at ``[HOST:]PORT``, if not "", while the context lasts.

        Raises UsageError: they cannot be served there.
        """
        if not address:
            yield
            return
        try:
            url = urlsplit(f"//{_LOOPBACK}:{address}" if address.isdigit() else f"//{address}")
            if url.port is None:
                raise ValueError("there is no port")
            host = url.hostname or _LOOPBACK
            server, thread = prometheus.start_http_server(url.port, host, self.registry)
        except (ValueError, OSError) as error:
            raise UsageError(
                f"--metrics {address}: cannot be served: {error}; give a port, or HOST:PORT"
            ) from None
        print_progress(f"metrics on http://{host}:{server.server_port}/metrics")
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def watch_cluster(
    options: TargetOptions, settle: float, metrics_at: str, as_json: bool
) -> ExitCode:
    """Audit a cluster until a signal ends it.

    Returns 1 if anything was found, 3 if something was not judged or not followed in the end, else
    0.

    Raises:
        UsageError: no such cluster, or the metrics cannot be served there.
        TargetError: it gave no answer, or something needed may not be read.
    """
    metrics = Metrics()
    auditor: Auditor | None = None
    with open_api(options) as api, metrics.serve(metrics_at), interrupted_by_signals():
        cluster = LiveCluster(api)
        try:
            cluster.start(lambda line: print_progress(f"warning: {line}"))
            auditor = Auditor(
                cluster.kubernetes, cluster.features, settle, sees_pods=cluster.sees_pods
            )
            _follow(cluster, auditor, metrics, as_json)
        except KeyboardInterrupt:
            if auditor is not None and auditor.broken:
                return ExitCode.NOT_CONFORMANT
            undecided = auditor is None or auditor.findings or not cluster.sees_pods
            if undecided or any(cluster.troubles().values()):
                return ExitCode.INCONCLUSIVE
        finally:
            cluster.stop()
    return ExitCode.CONFORMANT


def _follow(cluster: LiveCluster, auditor: Auditor, metrics: Metrics, as_json: bool) -> NoReturn:
    """Look at the cluster again and again, and print what is new."""
    troubles: dict[str, str] = {}
    wait, pause = _LONGEST, 0.0
    while True:
        changed = cluster.changes(wait)
        if changed:
            time.sleep(pause)
            changed = {**changed, **cluster.changes(0)}
        start = time.monotonic()
        auditor.take_changes(changed)
        news = auditor.judge(start)
        judging_seconds = time.monotonic() - start
        for word, findings in (("found", news.new), ("passed", news.passed)):
            for finding in findings:
                _print_change(word, finding, as_json)
        metrics.note_judging(auditor, judging_seconds)
        for resource, trouble in cluster.troubles().items():
            metrics.note_watch(resource, interrupted=trouble is not None)
            text = str(trouble) if trouble else ""
            if text != troubles.get(resource, ""):
                line = f"not followed: {text}" if text else f"{resource} are followed again"
                print_progress(line)
            troubles[resource] = text
        # However much changes, no more than half of a processor is used; but for the first look.
        pause = max(_BURST, judging_seconds) if pause else _BURST
        wait = _LONGEST if news.due is None else min(_LONGEST, max(0, news.due - time.monotonic()))


def _print_change(word: str, finding: Finding, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"change": word, **asdict(finding)}))
    else:
        typer.echo(printable(f"{word} {finding}"))
