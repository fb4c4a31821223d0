from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError, TargetGoneError
from kube.connection import Connection
from kube.errors import ApiError, api_error
from kube.nodes import RUN_LABEL
from kube.values import Query, Ref
from tests.kube.fake_api import TOKEN, FakeApi

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod0"}, "spec": {"x": 1}}
POD0 = Ref("v1", "Pod", "pod0")
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}


@pytest.fixture
def connection(api: FakeApi, tmp_path: Path) -> Connection:
    return Connection.open(api.kubeconfig(tmp_path / "config"), "fake")


def test_a_namespaced_object_goes_into_the_scopes_namespace(
    api: FakeApi, scope: ClusterScope
) -> None:
    created = scope.create(POD)
    assert created["metadata"]["namespace"] == "demo"
    assert created["apiVersion"] == "v1"
    assert scope.get(POD0) == created


def test_an_object_of_another_namespace_stays_there(scope: ClusterScope) -> None:
    scope.create({**POD, "metadata": {"name": "pod0", "namespace": "other"}})
    assert scope.get(POD0) is None
    assert scope.get(Ref("v1", "Pod", "pod0", "other")) is not None


def test_unknown_fields_are_refused_by_asking_for_strict_validation(
    api: FakeApi, scope: ClusterScope
) -> None:
    with pytest.raises(ApiError) as caught:
        scope.create({**POD, "spec": {"bogus": 1}})
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert api.count("POST", "fieldValidation=Strict") == 1


def test_an_object_can_be_read_in_each_served_version(scope: ClusterScope) -> None:
    scope.create(CLASS)
    for version in ("v1", "v1beta1"):
        found = scope.get(Ref(f"resource.k8s.io/{version}", "DeviceClass", "gpu"))
        assert found is not None
        assert found["apiVersion"] == f"resource.k8s.io/{version}"


@pytest.mark.parametrize(
    ("api_version", "kind"), [("resource.k8s.io/v1alpha2", "ResourceClass"), ("v1", "Nonsense")]
)
def test_it_is_the_server_that_refuses_a_kind_that_it_does_not_serve(
    scope: ClusterScope, api_version: str, kind: str
) -> None:
    with pytest.raises(ApiError, match="the server could not find the requested") as caught:
        scope.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_a_group_that_is_served_later_is_found_later(api: FakeApi, scope: ClusterScope) -> None:
    kinds = api.served.pop("resource.k8s.io/v1")
    with pytest.raises(ApiError):
        scope.create(CLASS)
    api.served["resource.k8s.io/v1"] = kinds
    scope.create(CLASS)


def test_a_patch_merges_and_null_removes(scope: ClusterScope) -> None:
    scope.create({**POD, "metadata": {"name": "pod0", "labels": {"a": "1", "b": "2"}}})
    scope.patch(POD0, {"metadata": {"labels": {"a": None, "c": "3"}}})
    changed = scope.get(POD0)
    assert changed is not None
    assert changed["metadata"]["labels"] == {"b": "2", "c": "3"}


def test_deleting_is_quiet_about_what_is_gone_and_passes_the_grace_period(
    api: FakeApi, scope: ClusterScope
) -> None:
    scope.create(POD)
    scope.delete(POD0, grace_seconds=0)
    scope.delete(POD0)
    assert scope.get(POD0) is None
    bodies = [body for method, _, _, body in api.requests if method == "DELETE"]
    assert bodies == [
        {"propagationPolicy": "Background", "gracePeriodSeconds": 0},
        {"propagationPolicy": "Background"},
    ]


def test_lists_are_of_the_namespace_and_carry_their_type(api: FakeApi, scope: ClusterScope) -> None:
    for namespace, name in (("demo", "b"), ("demo", "a"), ("other", "c")):
        api.put("pods", {"metadata": {"name": name, "namespace": namespace}})
    found = scope.find(Query("v1", "Pod"))
    assert [pod["metadata"]["name"] for pod in found] == ["a", "b"]
    assert {(pod["apiVersion"], pod["kind"]) for pod in found} == {("v1", "Pod")}


def test_the_user_agent_names_the_scenario(api: FakeApi, scope: ClusterScope) -> None:
    scope.create(POD)
    headers = api.requests[-1][2]
    assert headers["User-Agent"].startswith("dra-conformance/")
    assert headers["User-Agent"].endswith("(demo)")


def test_a_status_becomes_an_error_with_its_causes() -> None:
    error = api_error(
        422,
        b'{"kind":"Status","code":422,"reason":"Invalid","message":"Pod x is invalid","details":'
        b'{"causes":[{"field":"spec.a","reason":"FieldValueInvalid","message":"no"}]}}',
    )
    assert (error.code, error.reason, error.message) == (422, "Invalid", "Pod x is invalid")
    assert [(c.field, c.reason, c.message) for c in error.causes] == [
        ("spec.a", "FieldValueInvalid", "no")
    ]


def test_an_answer_that_is_no_status_is_an_error_with_its_text() -> None:
    error = api_error(502, b"<html>proxy is unwell</html>", "Bad Gateway")
    assert (error.code, error.reason) == (502, "BadGateway")
    assert "proxy is unwell" in error.message


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_read_is_repeated_until_the_server_can_answer(
    api: FakeApi, scope: ClusterScope, status: int
) -> None:
    scope.create(POD)
    api.fail("GET", "/pods/pod0", status, times=2)
    assert scope.get(POD0) is not None
    assert api.count("GET", "/pods/pod0") == 3


def test_a_read_is_repeated_when_the_connection_is_cut(api: FakeApi, scope: ClusterScope) -> None:
    scope.create(POD)
    api.fail("GET", "/pods/pod0", 0)
    assert scope.get(POD0) is not None


def test_a_creation_is_repeated_only_where_nothing_was_done(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.fail("POST", "/pods", 429, Retry_After="0")
    scope.create(POD)
    api.fail("POST", "/deviceclasses", 0)
    with pytest.raises(TargetError, match="it may have been carried out"):
        scope.create(CLASS)
    api.fail("POST", "/deviceclasses", 500)
    with pytest.raises(ApiError, match="told to fail"):
        scope.create(CLASS)
    assert api.count("POST", "/deviceclasses") == 2


@pytest.mark.parametrize("when", [0, -1], ids=["before", "after"])
def test_a_creation_whose_answer_got_lost_is_done_exactly_once(
    api: FakeApi, scope: ClusterScope, when: int
) -> None:
    api.fail("POST", "/pods", when)
    labelled = {**POD, "metadata": {"name": "pod0", "labels": {RUN_LABEL: "r1"}}}
    created = scope.create(labelled)
    assert created["metadata"]["uid"]
    assert scope.get(POD0) == created
    assert api.count("POST", "/pods") == (2 if when == 0 else 1)


def test_an_object_of_another_run_is_not_taken_for_the_one_whose_answer_got_lost(
    api: FakeApi, scope: ClusterScope
) -> None:
    meta = {"name": "pod0", "namespace": "demo", "labels": {RUN_LABEL: "other"}}
    api.put("pods", {"metadata": meta})
    api.fail("POST", "/pods", 0)
    with pytest.raises(TargetError, match="may have been carried out"):
        scope.create({**POD, "metadata": {"name": "pod0", "labels": {RUN_LABEL: "r1"}}})


def test_trouble_that_stays_is_an_error_of_the_target_and_says_so(
    api: FakeApi, connection: Connection
) -> None:
    api.fail("GET", "/version", 503, times=99)
    with pytest.raises(TargetError, match=r"answered GET /version with 503 for 0\.3 s"):
        connection.request("GET", "/version", patience=0.3)
    connection.close()


def test_credentials_that_are_not_known_yet_are_shown_again(
    api: FakeApi, connection: Connection
) -> None:
    """As an API server that has just started may say of a service account."""
    connection.request("GET", "/version")
    api.fail("GET", "/version", 401, times=2)
    assert connection.request("GET", "/version")["gitVersion"] == api.git_version


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_credentials_that_have_expired_end_the_run(
    api: FakeApi, connection: Connection, method: str
) -> None:
    connection.request("GET", "/version")
    api.refusal = (401, "Unauthorized")
    with pytest.raises(TargetGoneError, match=r"have expired or were revoked; .*--resume"):
        connection.request(method, "/api/v1/nodes", patience=0.2)


def test_credentials_that_were_never_accepted_are_refused_at_once(
    api: FakeApi, connection: Connection
) -> None:
    api.refusal = (401, "Unauthorized")
    with pytest.raises(ApiError) as caught:
        connection.request("GET", "/version")
    assert caught.value.code == 401
    assert len(api.requests) == 1


def test_a_server_that_is_not_there_is_named_with_what_to_do(
    api: FakeApi, connection: Connection
) -> None:
    api.close()
    with pytest.raises(TargetError) as caught:
        connection.request("GET", "/version", patience=0.2)
    message = str(caught.value)
    assert api.url in message
    assert "context 'fake'" in message
    assert "check that it runs" in message
    assert TOKEN not in message
    assert "\n" not in message
    connection.close()


def test_what_is_no_api_server_is_said(api: FakeApi, connection: Connection) -> None:
    api.metrics = "<html>"
    with pytest.raises(TargetError, match="not a JSON object"):
        connection.request("GET", "/metrics")
    connection.close()


def test_closing_ends_a_repetition(api: FakeApi, connection: Connection) -> None:
    connection.close()
    api.fail("GET", "/version", 503, times=99)
    with pytest.raises(TargetError, match="closed"):
        connection.request("GET", "/version")
