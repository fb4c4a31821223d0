from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from tests.kubesim import kit
from tests.mutants import mutant

Open = Callable[..., ReferenceTarget]

GATES = {"DRANodeAllocatableResources": True}
"""Beside the defaults of the version, for faults in what is off by default."""


@pytest.fixture
def open_target() -> Iterator[Open]:
    """Opens references with faults and options, and closes them after the test."""
    opened: list[ReferenceTarget] = []

    def open_(*faults: str, **options: Any) -> ReferenceTarget:
        target = mutant(*faults, **options)
        opened.append(target)
        return target

    yield open_
    for target in opened:
        target.close()


def new_scope(target: ReferenceTarget, namespace: str = "ns") -> ReferenceScope:
    scope = target.scope(namespace)
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    return scope


@pytest.fixture
def target(open_target: Open) -> ReferenceTarget:
    return open_target()


@pytest.fixture
def scope(target: ReferenceTarget) -> ReferenceScope:
    """A namespace on a reference with four GPUs and their class."""
    scope = new_scope(target)
    scope.create(kit.device_class())
    return scope


@pytest.fixture
def hollow(open_target: Open) -> ReferenceScope:
    """A namespace and a node without a kubelet, on which no pod gets ready by itself."""
    made = new_scope(open_target(nodes=()))
    made.create(kit.node("a"))
    return made


@pytest.fixture
def faulty(open_target: Open) -> Callable[[str], ReferenceScope]:
    """The same with a defect, and every feature that has one."""

    def make(fault: str) -> ReferenceScope:
        scope = new_scope(open_target(fault, feature_gates=GATES))
        scope.create(kit.device_class())
        return scope

    return make
