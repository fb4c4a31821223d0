"""Each fault can be seen from outside, and only with the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.targets.base import Ref
from conformance.targets.reference.scope import ReferenceScope
from tests.mutants import MUTATIONS
from tests.mutants.faults import Fault
from tests.targets.reference import (
    api_symptoms,
    feature_symptoms,
    kit,
    node_symptoms,
    scheduler_symptoms,
)

SYMPTOMS = {
    **api_symptoms.SYMPTOMS,
    **feature_symptoms.SYMPTOMS,
    **scheduler_symptoms.SYMPTOMS,
    **node_symptoms.SYMPTOMS,
}


def test_every_fault_has_a_mutation_and_a_symptom() -> None:
    assert set(MUTATIONS) == set(SYMPTOMS) == set(Fault)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_fault_shows(faulty: Callable[[Fault], ReferenceScope], fault: Fault) -> None:
    assert SYMPTOMS[fault](faulty(fault))


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_reference_without_the_fault_does_not_show_it(
    faultless: ReferenceScope, fault: Fault
) -> None:
    assert not SYMPTOMS[fault](faultless)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_cleanup_works_in_spite_of_the_fault(
    faulty: Callable[[Fault], ReferenceScope], fault: Fault
) -> None:
    scope = faulty(fault)
    scope.create(kit.claim("c"))
    scope.create(kit.template("t"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    scope.create(kit.pod("q", templates={"g": "t"}))
    old = kit.resource_slice("s", "n", "d.example.com", {"name": "d0", "basic": {}})
    scope.create({**old, "apiVersion": "resource.k8s.io/v1beta1"})
    scope.pause(10)
    namespace = Ref("v1", "Namespace", "ns")
    scope.delete(namespace)
    kit.gone(scope, namespace)
