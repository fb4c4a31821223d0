"""Whatever happens in whatever order: what must never be is not, and all can be cleaned up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance import probe
from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Query, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import new_scope

NAMES = ("a", "b", "c", "d")
CLAIMS = ("x", "y")

actions = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from(NAMES), st.sampled_from(("x", "y", "t", "once"))),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.sampled_from(("", "force"))),
        st.tuples(st.just("claim"), st.sampled_from(CLAIMS), st.integers(1, 3)),
        st.tuples(st.just("delete claim"), st.sampled_from(CLAIMS), st.just("")),
        st.tuples(st.just("pause"), st.just(""), st.sampled_from((0.05, 1.0, 40.0))),
    ),
    max_size=20,
)


def perform(scope: ReferenceScope, action: tuple[str, str, object]) -> None:
    what, name, more = action
    match what:
        case "pod" if scope.get(kit.pod_ref(name)) is None:
            if more == "once":
                container = kit.container("ctr0", "g", command=probe.EXIT)
                pod = kit.pod(name, container, templates={"g": "t"}, restartPolicy="Never")
            elif more == "t":
                pod = kit.pod(name, templates={"g": "t"})
            else:
                pod = kit.pod(name, claims={"g": str(more)})
            scope.create(pod)
        case "delete":
            scope.delete(kit.pod_ref(name), grace_seconds=0 if more == "force" else None)
        case "claim" if scope.get(kit.claim_ref(name)) is None:
            scope.create(kit.claim(name, kit.request(count=more)))
        case "delete claim":
            scope.delete(kit.claim_ref(name))
        case "pause":
            assert isinstance(more, float)
            scope.pause(more)


def check(scope: ReferenceScope) -> None:
    claims = kit.claims_of(scope)
    used = [device for claim in claims for device in kit.devices(claim)]
    assert len(used) == len(set(used)), "a device is in two claims"
    allocated = set()
    for claim in claims:
        users = claim["status"].get("reservedFor") or []
        has_finalizer = bool(claim["metadata"].get("finalizers"))
        assert has_finalizer == ("allocation" in claim["status"])
        assert not users or "allocation" in claim["status"]
        if "allocation" in claim["status"]:
            allocated.add(claim["metadata"]["uid"])
    assert set(scope.observe.cdi_claims()) <= allocated, "a spec on disk is for no allocated claim"
    for pod in scope.find(Query("v1", "Pod")):
        if pod["status"]["phase"] == "Running":
            assert kit.seen(scope, pod["metadata"]["name"]), "a running pod has no device"


@given(actions)
def test_invariants_hold_over_random_histories(history: list[tuple[str, str, object]]) -> None:
    with ReferenceTarget() as target:
        scope = new_scope(target)
        scope.create(kit.device_class())
        scope.create(kit.template("t"))
        for action in history:
            perform(scope, action)
            check(scope)
        namespace = Ref("v1", "Namespace", "ns")
        scope.delete(namespace)
        kit.gone(scope, namespace)
        check(scope)
        assert scope.observe.cdi_claims() == {}
