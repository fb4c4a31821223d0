"""A process of our own driver that a test starts, listens to, stops and kills."""

from __future__ import annotations

import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

T = TypeVar("T")


def eventually(check: Callable[[], T], what: str, seconds: float = 180) -> T:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (answer := check()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return answer


class DriverProcess:
    """One process of our own driver beside the node's kubelet, with its log in a file."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def said(self, pattern: str) -> list[str]:
        """What the log has, by the pattern's group, or whole."""
        return re.findall(pattern, self.log.read_text())

    def hears(self, pattern: str) -> str:
        """The first of it, when it has been logged."""

        def look() -> list[str]:
            assert self.process.poll() is None, self.log.read_text()
            return self.said(pattern)

        return eventually(look, pattern)[0]

    def stop(self) -> None:
        """SIGTERM; it must end well."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log.read_text()
        assert "Traceback" not in self.log.read_text(), self.log.read_text()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(60)

    def metrics(self) -> dict[tuple[str, str], float]:
        """(sample's name, operation) -> value, as a scraper gets them over HTTP."""
        port = self.hears(r"metrics on port (\d+)")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return {
            (sample.name, sample.labels.get("operation", "")): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
