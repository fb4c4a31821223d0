"""A served reference, sound or with a defect, as the cluster that is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.serving import real_time
from kube.api import Api
from kube.connection import Connection
from kubesim.front.server import Front
from kubesim.front.serving import seconds_since_epoch
from tests.mutants import mutant


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Api]]:
    with ExitStack() as stack:

        def serve(*defects: str) -> Api:
            start = seconds_since_epoch()
            target = mutant(*defects, devices=NoDriver("none"), nodes=(), start=start)
            stack.callback(target.close)
            backend = real_time(target)
            front = Front(backend, tmp_path, "test")
            stack.callback(front.close)
            threading.Thread(target=backend.run, daemon=True).start()
            opened = Connection.open(front.kubeconfig, "dra-conformance-test")
            return Api(stack.enter_context(closing(opened)))

        yield serve
