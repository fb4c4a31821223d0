"""A watch that a scenario opens: narrowed by the server, resumed where it was cut, or given up."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError
from kube.values import Query
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import until

V1 = "resource.k8s.io/v1"


def claim(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "demo", **metadata}}


def queries(api: FakeApi) -> list[dict[str, list[str]]]:
    """Of the lists and watches of claims in the scenario's namespace."""
    paths = [path for _, path, _, _ in api.requests if "/namespaces/demo/resourceclaims" in path]
    return [parse_qs(urlsplit(path).query) for path in paths]


def test_the_server_narrows_the_list_and_the_watch(api: FakeApi, scope: ClusterScope) -> None:
    scope.watch(Query(V1, "ResourceClaim", {"a": "b", "c": "d"}, None, {"metadata.name": "one"}))
    until(lambda: len(queries(api)) == 2)
    listed, watched = queries(api)
    for query in (listed, watched):
        assert query["labelSelector"] == ["a=b,c=d"]
        assert query["fieldSelector"] == ["metadata.name=one"]
    assert "watch" not in listed
    assert watched["watch"] == ["true"]


def test_it_tells_what_happens_since_and_a_wait_looks_again(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("resourceclaims", claim("before"))
    watching = scope.watch(Query(V1, "ResourceClaim"))
    api.put("resourceclaims", claim("one"))
    api.drop("resourceclaims", "demo", "before")
    found = scope.wait(lambda: watching.events() if len(watching.events()) == 2 else None, 10)
    assert found is not None
    names = [(change, obj["metadata"]["name"]) for change, obj in found]
    assert names == [("ADDED", "one"), ("DELETED", "before")]


def test_it_goes_on_where_it_was_cut(api: FakeApi, scope: ClusterScope) -> None:
    watching = scope.watch(Query(V1, "ResourceClaim"))
    api.put("resourceclaims", claim("one"))
    until(watching.events)
    api.cut()
    api.put("resourceclaims", claim("two"))
    until(lambda: len(watching.events()) == 2)
    assert [change for change, _ in watching.events()] == ["ADDED", "ADDED"]
    assert ["watch" in query for query in queries(api)] == [False, True, True]


def test_a_gap_is_no_result(api: FakeApi, scope: ClusterScope) -> None:
    watching = scope.watch(Query(V1, "ResourceClaim"))
    until(lambda: len(queries(api)) == 2)
    api.forget()

    def known() -> bool:
        try:
            watching.events()
        except TargetError:
            return False
        return True

    until(lambda: not known())
    with pytest.raises(TargetError, match="410 Gone"):
        watching.events()


def test_it_ends_with_its_scope(scope: ClusterScope) -> None:
    def watches() -> int:
        return sum("watch resourceclaims" in thread.name for thread in threading.enumerate())

    before = watches()
    scope.watch(Query(V1, "ResourceClaim"))
    assert watches() == before + 1
    scope.close()
    assert watches() == before
