from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from conformance.engine.objects.ledger import Ledger
from conformance.seam.scope import Scope, Target
from conformance.targets.cluster import ClusterTarget
from conformance.targets.cluster import objects as objects_module
from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError
from kube.values import Obj, Query, Ref
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget, until

POD0 = Ref("v1", "Pod", "pod0")


def pod(phase: str = "Pending", **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod0", "namespace": "demo", **metadata},
        "status": {"phase": phase},
    }


class Later:
    """Plays a controller in a thread of its own."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._thread = threading.Thread(target=act)
        self._thread.start()

    def __enter__(self) -> Later:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def phase_is(scope: ClusterScope, phase: str) -> Callable[[], Obj | None]:
    def check() -> Obj | None:
        found = scope.get(POD0)
        return found if found and found["status"]["phase"] == phase else None

    return check


def test_a_change_ends_the_wait_by_a_watch_and_not_by_polling(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod())

    def act() -> None:
        until(lambda: api.count("GET", "watch=true"))
        time.sleep(0.2)
        api.put("pods", pod("Running"))

    began = time.monotonic()
    with Later(act):
        assert scope.wait(phase_is(scope, "Running"), 10) is not None
    assert time.monotonic() - began < 2
    assert api.count("GET", "/pods") == 2  # one list, one watch
    assert api.count("GET", "/namespaces/demo/pods?watch=true") == 1


def test_the_time_that_is_over_gives_none_after_a_last_look_at_the_server(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod())
    assert scope.wait(phase_is(scope, "Running"), 0.2) is None
    assert api.count("GET", "/pods/pod0") == 1


def test_a_wait_without_changes_looks_each_second_so_that_a_run_can_be_interrupted(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod())
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    began = time.monotonic()
    assert scope.wait(lambda: True if stopped.is_set() else None, 30) is True
    assert time.monotonic() - began < 5


def test_what_a_watch_is_late_to_tell_is_no_mismatch(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod())
    api.mute = True

    def act() -> None:
        until(lambda: api.count("GET", "watch=true"))
        api.put("pods", pod("Running"))

    with Later(act):
        assert scope.wait(phase_is(scope, "Running"), 0.3) is not None
    api.unmute()


def test_the_cache_has_at_once_what_the_scope_itself_did(api: FakeApi, scope: ClusterScope) -> None:
    assert scope.wait(lambda: scope.get(POD0), 0) is None  # now the pods are followed
    # By a thread of its own, whose request would be counted below if it came later.
    until(lambda: api.count("GET", "/pods?watch=true"))
    api.mute = True
    lists = api.count("GET", "/pods")

    def cached() -> Any:
        found: list[Any] = []

        def look() -> bool:
            found.append(scope.get(POD0))
            return True

        scope.wait(look, 0)
        return found[0]

    created = scope.create(pod())
    assert cached() == created
    scope.patch(POD0, {"status": {"phase": "Running"}}, "status")
    assert (cached() or {})["status"]["phase"] == "Running"
    scope.delete(POD0)
    assert cached() is None
    # Reading the deleted object once is all that went to the server beside the requests.
    assert api.count("GET", "/pods") == lists + 1
    api.unmute()
    time.sleep(0.1)  # the late events arrive, and change nothing
    assert cached() is None


def test_a_finalizer_keeps_a_deleted_object_in_the_cache(api: FakeApi, scope: ClusterScope) -> None:
    api.finalized.add("pods")
    scope.wait(lambda: scope.get(POD0), 0)
    scope.create(pod())
    scope.delete(POD0)
    found = scope.wait(lambda: scope.get(POD0), 0)
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]
    api.drop("pods", "demo", "pod0")
    began = time.monotonic()
    assert scope.wait(lambda: scope.get(POD0) is None or None, 5)
    assert time.monotonic() - began < 3


def test_another_version_than_the_caches_is_asked_of_the_server_at_each_change(
    api: FakeApi, scope: ClusterScope
) -> None:
    claim = {"metadata": {"name": "c", "namespace": "demo"}, "spec": {}}
    new, old = (Ref(f"resource.k8s.io/{v}", "ResourceClaim", "c") for v in ("v1", "v1beta1"))

    def check() -> str | None:
        first, second = scope.get(new), scope.get(old)
        return f"{first['apiVersion']} {second['apiVersion']}" if first and second else None

    def act() -> None:
        until(lambda: api.count("GET", "watch=true") == 2)
        api.put("resourceclaims", claim)

    began = time.monotonic()
    with Later(act):
        assert scope.wait(check, 5) == "resource.k8s.io/v1 resource.k8s.io/v1beta1"
    assert time.monotonic() - began < 3
    assert api.count("GET", "watch=true") == 2  # one more looks for devices in two claims


def test_a_watch_whose_place_was_forgotten_lists_again(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod())
    api.put("pods", {"metadata": {"name": "old", "namespace": "demo"}})
    assert scope.wait(lambda: scope.find(Query("v1", "Pod")), 5)
    until(lambda: api.count("GET", "pods?watch=true"))
    with api.changed:
        api.mute = True
        api.drop("pods", "demo", "old")
        api.put("pods", pod("Running"))
        api.forget()
        api.mute = False
    began = time.monotonic()
    assert scope.wait(phase_is(scope, "Running"), 5) is not None

    def names() -> list[str] | None:
        found = [p["metadata"]["name"] for p in scope.find(Query("v1", "Pod"))]
        return found if found == ["pod0"] else None

    assert scope.wait(names, 5) is not None
    assert time.monotonic() - began < 3  # the watches told it, not the last look at the server
    assert len([p for m, p, _, _ in api.requests if m == "GET" and p.endswith("/pods")]) == 2


def test_a_cut_watch_goes_on_where_it_was(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod())
    assert scope.wait(phase_is(scope, "Pending"), 5)
    until(lambda: api.count("GET", "watch=true"))
    with api.changed:
        api.mute = True
        api.cut()
        api.put("pods", pod("Running"))
        api.mute = False
    began = time.monotonic()
    assert scope.wait(phase_is(scope, "Running"), 5) is not None
    assert time.monotonic() - began < 3
    lists = [p for m, p, _, _ in api.requests if m == "GET" and p.endswith("/pods")]
    assert len(lists) == 1


def test_a_server_that_goes_away_during_a_wait_is_an_error_and_no_mismatch(
    api: FakeApi, scope: ClusterScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "_TROUBLE_SECONDS", 0.2)
    api.put("pods", pod())
    assert scope.wait(phase_is(scope, "Pending"), 5)
    with Later(api.close), pytest.raises(TargetError, match="no answer from the API server"):
        scope.wait(phase_is(scope, "Running"), 20)


def test_a_watch_that_is_refused_is_an_error_and_no_mismatch(
    api: FakeApi, scope: ClusterScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_module, "_TROUBLE_SECONDS", 0.2)
    api.fail("GET", "watch=true", 403, times=99)
    with pytest.raises(TargetError, match="refuses to watch"):
        scope.wait(phase_is(scope, "Running"), 20)
    api.failures.clear()


def test_cluster_scoped_kinds_are_followed_once_for_all_scopes(
    api: FakeApi, target: ClusterTarget
) -> None:
    ref = Ref("resource.k8s.io/v1", "DeviceClass", "gpu")
    scopes = [target.scope(name) for name in ("one", "two")]
    api.put("deviceclasses", {"metadata": {"name": "gpu"}})
    for scope in scopes:
        assert scope.wait(lambda scope=scope: scope.get(ref), 5)  # type: ignore[misc]
    assert api.count("GET", "/deviceclasses?watch=true") <= 1
    for scope in scopes:
        scope.close()
    until(lambda: api.count("GET", "/deviceclasses?watch=true") == 1)


def test_scopes_in_parallel_do_not_wake_or_see_each_other(
    api: FakeApi, target: ClusterTarget
) -> None:
    looks: dict[str, int] = {"one": 0, "two": 0}
    scopes = {name: target.scope(name) for name in looks}

    def follow(name: str) -> None:
        def check() -> Obj | None:
            looks[name] += 1
            return scopes[name].get(POD0)

        assert (scopes[name].wait(check, 5 if name == "one" else 1) is not None) == (name == "one")

    threads = [threading.Thread(target=follow, args=(name,)) for name in looks]
    for thread in threads:
        thread.start()
    until(lambda: api.count("GET", "pods?watch=true") == 2)
    for phase in ("Pending", "Running", "Succeeded"):
        api.put("pods", {**pod(phase), "metadata": {"name": "pod0", "namespace": "one"}})
    until(lambda: not threads[0].is_alive())
    assert looks["two"] <= 2
    api.put("pods", {**pod(), "metadata": {"name": "other", "namespace": "two"}})
    threads[0].join()
    threads[1].join()
    for scope in scopes.values():
        scope.close()


def watches() -> int:
    return sum(thread.name.startswith("watch") for thread in threading.enumerate())


def test_closing_ends_the_threads(target: ClusterTarget) -> None:
    scope = target.scope("demo")
    scope.wait(lambda: scope.get(POD0), 0)
    scope.wait(lambda: scope.find(Query("v1", "Event")), 0)
    scope.wait(lambda: scope.find(Query("v1", "Node")) or True, 0)
    assert watches() == 4  # one for devices in two claims
    began = time.monotonic()
    scope.close()
    target.close()
    assert time.monotonic() - began < 2
    assert not watches()


def test_closing_the_target_closes_the_scopes_that_are_still_open(make_target: MakeTarget) -> None:
    target: Target = make_target(record=True)
    scope: Scope = target.scope("demo")
    scope.wait(lambda: scope.find(Query("v1", "Event")), 0)
    assert watches()
    target.close()
    assert not watches()


def test_a_pod_of_a_new_namespace_waits_for_its_service_account(
    api: FakeApi, scope: ClusterScope
) -> None:
    """Of several that come at once, none goes ahead; afterwards it is not looked for again."""
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}})
    before: list[int] = []

    def act() -> None:
        until(lambda: api.count("GET", "serviceaccounts"))
        time.sleep(0.1)
        before.append(api.count("POST", "/pods"))
        api.put("serviceaccounts", {"metadata": {"name": "default", "namespace": "demo"}})

    def create(name: str) -> None:
        scope.create(pod(name=name))

    with Later(act):
        scope.at_once([partial(create, "pod0"), partial(create, "pod1")])
    assert before == [0]
    assert api.count("POST", "/pods") == 2
    scope.create(pod(name="pod2"))
    assert api.count("GET", "serviceaccounts") == 1


def test_what_is_done_at_once_overlaps(scope: ClusterScope) -> None:
    others, met = threading.Barrier(3), []

    def meet() -> None:
        met.append(others.wait(5))

    scope.at_once([meet] * 3)
    assert sorted(met) == [0, 1, 2]


def test_a_pod_waits_for_the_users_that_its_namespace_may_run_as(
    api: FakeApi, scope: ClusterScope
) -> None:
    namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    api.put("serviceaccounts", {"metadata": {"name": "default", "namespace": "demo"}})
    ledger = Ledger(scope, {"a": "b"}, ranges=True)
    ledger.create(namespace)

    def annotate() -> None:
        until(lambda: api.count("GET", "/namespaces?watch"))
        notes = {"openshift.io/sa.scc.uid-range": "1000700000-1000709999"}
        api.put("namespaces", {"metadata": {"name": "demo", "annotations": notes}})

    with Later(annotate):
        ledger.create({**pod(), "spec": {"containers": [{"name": "c"}]}})
    ledger.create({**pod(name="pod1"), "spec": {"containers": [{"name": "c"}]}})
    sent = [body.get("spec", {}) for method, _, _, body in api.requests if method == "POST"]
    contexts = [spec["securityContext"] for spec in sent if "containers" in spec]
    assert [one["runAsUser"] for one in contexts] == [1000700000] * 2


def test_pausing_lasts_as_long_as_asked(scope: ClusterScope) -> None:
    began = time.monotonic()
    scope.pause(0.1)
    assert 0.1 <= time.monotonic() - began < 1
