"""Requests over HTTP: what is refused with which status, and what the verbs do."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest

from kube.api import Api, collect_objects
from kube.connection import TABLE, Connection
from kube.values import Obj, cells_of
from kubesim.apiserver.tables import human_duration
from kubesim.front.body import MAX_BODY
from kubesim.front.server import Front
from kubesim.world import KUBERNETES
from tests.kubesim.front.conftest import ACCOUNT, CLAIMS, Client, claim

ANY_CLAIM = "/apis/resource.k8s.io/v1/resourceclaims"
ALIASES = b"a0: &a0 [x]\n" + b"".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n".encode() for level in range(1, 9)
)
"""Nine levels, each nine times the one before: 43 million values in a few hundred bytes."""

FORGOTTEN = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4XHUwMDAwIn0"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "code"),
    [
        ("GET", CLAIMS, None, {"authorization": ""}, 401),
        ("GET", "/api", None, {"authorization": "Bearer wrong"}, 401),
        ("GET", CLAIMS, None, {"authorization": "Bearer its-token"}, 403),
        ("GET", CLAIMS, None, {"impersonate_user": "somebody"}, 403),
        ("GET", "/apis/resource.k8s.io/v1alpha3/resourceclaims", None, {}, 404),
        ("GET", f"{CLAIMS}/none", None, {}, 404),
        ("DELETE", f"{CLAIMS}/none", None, {}, 404),
        ("GET", "/api/v1/namespaces/default/scale", None, {}, 404),
        ("GET", CLAIMS, None, {"accept": "application/cbor"}, 406),
        ("GET", f"{CLAIMS}?limit=x", None, {}, 400),
        ("GET", f"{CLAIMS}?labelSelector=a+b", None, {}, 400),
        ("GET", f"{CLAIMS}?fieldSelector=spec.devices=x", None, {}, 400),
        ("GET", f"{CLAIMS}?watch=1&resourceVersion=-1", None, {}, 500),
        ("GET", f"{CLAIMS}?continue={FORGOTTEN}", None, {}, 410),
        ("POST", CLAIMS, b"{", {}, 400),
        ("POST", CLAIMS, b"[" * 100_000, {}, 400),
        ("POST", CLAIMS, b"[" + b"[]," * 1_000_000 + b"[]]", {}, 400),
        ("POST", CLAIMS, b"- a\n" * 700_000, {"content_type": "application/yaml"}, 400),
        ("POST", CLAIMS, b"- a\n" * 100_001, {"content_type": "application/yaml"}, 400),
        ("POST", CLAIMS, b"[" * 100_000, {"content_type": "application/yaml"}, 400),
        ("POST", CLAIMS, ALIASES, {"content_type": "application/yaml"}, 400),
        ("POST", CLAIMS, b"a: 1\n---\nb: 1", {"content_type": "application/yaml"}, 422),
        ("POST", CLAIMS, b"a: !!python/name:os.system", {"content_type": "application/yaml"}, 400),
        ("POST", CLAIMS, b'{"metadata": {"generation": 1e999}}', {}, 400),
        ("POST", CLAIMS, '{"metadata": {"name": "x"}}'.encode("utf-16"), {}, 400),
        ("POST", CLAIMS, [], {}, 400),
        ("POST", CLAIMS, {"metadata": []}, {}, 400),
        ("POST", CLAIMS, {"metadata": {"name": "x", "namespace": "other"}}, {}, 400),
        ("POST", CLAIMS, {"kind": "Pod"}, {}, 400),
        ("POST", f"{CLAIMS}?fieldValidation=Strict", {**claim("x"), "spce": {}}, {}, 400),
        ("POST", CLAIMS, claim("Not A Name"), {}, 422),
        ("POST", CLAIMS, b"a" * (MAX_BODY + 1), {}, 413),
        ("POST", CLAIMS, b"x", {"content_type": "text/plain"}, 415),
        ("POST", CLAIMS, b"x", {"content_type": "application/vnd.kubernetes.protobuf"}, 400),
        ("POST", f"{CLAIMS}/x", claim("x"), {}, 405),
        ("PUT", CLAIMS, claim("x"), {}, 405),
        ("PUT", f"{CLAIMS}/x", claim("y"), {}, 400),
        ("PATCH", f"{CLAIMS}/x", {}, {"content_type": "application/json"}, 415),
        ("PATCH", f"{CLAIMS}/x", {}, {"content_type": "application/apply-patch+yaml"}, 422),
        ("POST", CLAIMS.replace("default", "none"), claim("x"), {}, 404),
    ],
)
def test_it_is_refused(
    client: Client, method: str, path: str, body: Any, headers: dict[str, str], code: int
) -> None:
    answer = client.send(method, path, body, **headers)
    status = answer.json()
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code), status


def test_what_is_no_unicode_is_replaced_so_that_lists_can_be_answered(client: Client) -> None:
    """As encoding/json of Go does it."""
    made = json.dumps(claim("x")).encode()
    parameters = b'"parameters": {"half": "\\ud800", "bytes": "\xff", "whole": "\\ud83d\\ude00"}'
    opaque = b'{"opaque": {"driver": "some.example.com", ' + parameters + b"}}"
    made = made.replace(b'"requests"', b'"config": [' + opaque + b'], "requests"')
    assert client.send("POST", CLAIMS, made).status == 201
    [listed] = client.send("GET", CLAIMS).json()["items"]
    [config] = listed["spec"]["devices"]["config"]
    replaced = {"half": "\ufffd", "bytes": "\ufffd", "whole": "\U0001f600"}
    assert config["opaque"]["parameters"] == replaced


def test_a_table_is_answered_where_it_is_asked_for(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    listed = client.send("GET", CLAIMS, accept=f"{TABLE},application/json").json()
    assert [one["name"] for one in listed["columnDefinitions"]] == ["Name", "State", "Age"]
    [row] = listed["rows"]
    assert row["cells"][:2] == ["one", "pending"]
    assert row["object"]["metadata"]["namespace"] == "default"
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert cells_of(client.send("GET", f"{CLAIMS}/one", accept=TABLE).json())["State"] == "pending"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (119, "119s"),
        (120, "2m"),
        (301, "5m1s"),
        (3600, "60m"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (50 * 3600, "2d2h"),
        (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
        (4000 * 86400, "10y"),
    ],
)
def test_ages_are_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_an_object_is_created_changed_and_deleted(client: Client) -> None:
    created = client.send("POST", CLAIMS, claim("one"))
    assert created.status == 201
    assert client.send("POST", CLAIMS, claim("one")).json()["reason"] == "AlreadyExists"
    changed = {**created.json(), "metadata": {**created.json()["metadata"], "labels": {"a": "b"}}}
    assert client.send("PUT", f"{CLAIMS}/one", changed).status == 200
    assert client.send("PUT", f"{CLAIMS}/one", changed).json()["reason"] == "Conflict"
    patch = {"metadata": {"labels": {"a": None, "c": "d"}}}
    patched = client.send("PATCH", f"{CLAIMS}/one", patch, content_type=MERGE).json()
    assert patched["metadata"]["labels"] == {"c": "d"}
    other_uid = {"preconditions": {"uid": "other"}}
    assert client.send("DELETE", f"{CLAIMS}/one", other_uid).status == 409
    assert client.send("DELETE", f"{CLAIMS}/one").json()["metadata"]["name"] == "one"
    assert client.send("GET", f"{CLAIMS}/one").status == 404


def test_a_dry_run_stores_nothing(client: Client) -> None:
    assert client.send("POST", f"{CLAIMS}?dryRun=All", claim("one")).status == 201
    assert client.send("GET", f"{CLAIMS}/one").status == 404


def test_unknown_fields_are_dropped_where_the_request_says_so(client: Client) -> None:
    wrong = {**claim("one"), "unknown": {}}
    created = client.send("POST", f"{CLAIMS}?fieldValidation=Ignore", wrong)
    assert created.status == 201
    assert "unknown" not in created.json()


def test_an_object_is_given_in_the_version_of_the_path(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    flat = client.send("GET", f"{CLAIMS.replace('/v1/', '/v1beta1/')}/one").json()
    assert flat["apiVersion"] == "resource.k8s.io/v1beta1"
    assert flat["spec"]["devices"]["requests"][0]["deviceClassName"] == "some.example.com"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a", "b", "c"]),
        ("labelSelector=x", ["a", "b"]),
        ("labelSelector=!x", ["c"]),
        ("labelSelector=x=1", ["a"]),
        ("labelSelector=x==1", ["a"]),
        ("labelSelector=x!=1", ["b", "c"]),
        ("labelSelector=x in (1,2)", ["a", "b"]),
        ("labelSelector=x notin (1),x", ["b"]),
        ("fieldSelector=metadata.name=b", ["b"]),
        ("fieldSelector=metadata.name!=b,metadata.namespace=default", ["a", "c"]),
    ],
)
def test_selectors_select(client: Client, query: str, names: list[str]) -> None:
    for name, labels in (("c", {}), ("a", {"x": "1"}), ("b", {"x": "2"})):
        client.send("POST", CLAIMS, claim(name, **labels))
    listed = client.send("GET", f"{ANY_CLAIM}?{query.replace(' ', '%20')}").json()
    assert [one["metadata"]["name"] for one in listed["items"]] == names


def test_a_list_in_pages_is_of_one_moment(client: Client) -> None:
    for name in "abc":
        client.send("POST", CLAIMS, claim(name))
    first = client.send("GET", f"{CLAIMS}?limit=2").json()
    assert first["metadata"]["remainingItemCount"] == 1
    client.send("DELETE", f"{CLAIMS}/c")
    token = first["metadata"]["continue"]
    second = client.send("GET", f"{CLAIMS}?limit=2&continue={token}").json()
    assert [one["metadata"]["name"] for one in second["items"]] == ["c"]
    version = first["metadata"]["resourceVersion"]
    assert second["metadata"] == {"resourceVersion": version}


def test_a_collection_is_deleted_by_its_selector(client: Client) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {})):
        client.send("POST", CLAIMS, claim(name, **labels))
    assert client.send("DELETE", f"{CLAIMS}?labelSelector=x").status == 200
    listed = client.send("GET", CLAIMS).json()
    assert [one["metadata"]["name"] for one in listed["items"]] == ["b"]


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer its-token"}, {"impersonate_user": str(ACCOUNT)}]
)
def test_an_account_may_do_what_its_rules_allow(
    front: Front, client: Client, headers: dict[str, str]
) -> None:
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims"],
        "verbs": ["get", "create"],
    }
    front.backend.handler.authorizer.grant(ACCOUNT, [rule])
    assert client.send("POST", CLAIMS, claim("one"), **headers).status == 201
    assert client.send("GET", f"{CLAIMS}/one", **headers).status == 200
    for method, path in (("GET", CLAIMS), ("DELETE", f"{CLAIMS}/one"), ("DELETE", CLAIMS)):
        assert client.send(method, path, **headers).status == 403, (method, path)


def test_who_has_another_certificate_authority_does_not_connect(
    client: Client, tmp_path: Any
) -> None:
    import urllib3

    with pytest.raises(urllib3.exceptions.SSLError):
        urllib3.PoolManager().request("GET", f"{client.server}/api", retries=False)


def test_the_version_has_what_typed_clients_want(client: Client) -> None:
    version = client.send("GET", "/version/").json()
    assert version["gitVersion"] == f"v{KUBERNETES}"
    assert KUBERNETES.startswith(f"{version['major']}.{version['minor']}.")
    texts = ("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform")
    assert all(isinstance(version[field], str) for field in texts)


def test_answers_do_not_wait_for_acknowledgements(front: Front, client: Client) -> None:
    client.send("GET", "/version")
    [connection] = front.connections
    connected = connection.transport.get_extra_info("socket")
    assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_discovery_has_every_kind_once(client: Client) -> None:
    groups = client.send("GET", "/apis").json()["groups"]
    versions = [one["groupVersion"] for group in groups for one in group["versions"]]
    assert {"apps/v1", "batch/v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta1"} <= set(versions)
    for version in versions:
        found = client.send("GET", f"/apis/{version}").json()["resources"]
        names = [one["name"] for one in found]
        assert names
        assert len(set(names)) == len(names)
    assert client.send("GET", "/version").json()["gitVersion"] == f"v{KUBERNETES}"
    paths = client.send("GET", "/openapi/v3").json()["paths"]
    for one in paths.values():
        operations = client.send("GET", one["serverRelativeURL"]).json()["paths"].values()
        parameters = [item["name"] for each in operations for item in each["patch"]["parameters"]]
        assert set(parameters) == {"fieldValidation"}


def test_openapi_has_a_schema_for_all_that_it_refers_to(client: Client) -> None:
    kinds = set()
    for one in client.send("GET", "/openapi/v3").json()["paths"].values():
        document = client.send("GET", one["serverRelativeURL"]).json()
        schemas = document["components"]["schemas"]
        referred = set(re.findall(r"#/components/schemas/([^'\"]+)", json.dumps(document)))
        assert referred <= set(schemas)
        for schema in schemas.values():
            kinds |= {gvk["kind"] for gvk in schema.get("x-kubernetes-group-version-kind", ())}
    assert {"Pod", "Node", "ResourceClaim", "ResourceSlice"} <= kinds
    document = client.send("GET", "/openapi/v3/apis/resource.k8s.io/v1").json()
    status = document["components"]["schemas"]["io.k8s.api.resource.v1.DeviceTaintRuleStatus"]
    assert status["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_list_is_collected_in_pages_and_in_one_piece_where_a_page_is_too_old(
    front: Front, client: Client, forgets: bool
) -> None:
    for name in "abcde":
        client.send("POST", CLAIMS, claim(name))
    api = Api(Connection.open(front.kubeconfig, "dra-conformance-test"))
    seen: list[str] = []

    def keep(obj: Obj) -> str | None:
        seen.append(obj["kind"])
        if forgets:
            front._remaining_lists.clear()
        name: str = obj["metadata"]["name"]
        return name if name != "c" else None

    resource = api.discovery.find("resource.k8s.io/v1", "ResourceClaim")
    assert collect_objects(api.connection, resource, keep, page=2)[0] == ["a", "b", "d", "e"]
    assert seen == ["ResourceClaim"] * (7 if forgets else 5)
    api.connection.close()


@pytest.mark.parametrize(
    ("front", "warned"), [("1.37.1", False), ("1.38.0", True)], indirect=["front"]
)
def test_a_rule_about_all_devices_is_warned_of_since_1_38(client: Client, warned: bool) -> None:
    path = "/apis/resource.k8s.io/v1/devicetaintrules"
    taint = {"key": "example.com/t", "effect": "NoSchedule"}
    every: Obj = {"metadata": {"name": "every"}, "spec": {"deviceSelector": {}, "taint": taint}}
    one = {"metadata": {"name": "one"}, "spec": {"deviceSelector": {"pool": "p"}, "taint": taint}}
    answers = [client.send("POST", path, rule) for rule in (every, one)]
    assert [answer.status for answer in answers] == [201, 201]
    changed = client.send(
        "PATCH", f"{path}/every", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE
    )
    text = (
        '299 - "spec.deviceSelector: an empty selector matches every device from every driver in '
        'the cluster"'
    )
    for answer in (answers[0], changed):
        assert answer.headers.get("warning") == (text if warned else None)
    assert "warning" not in answers[1].headers


@pytest.mark.parametrize(
    ("selector", "groups", "code"),
    [
        ("?fieldSelector=spec.nodeName=node", "system:nodes", 200),
        ("?fieldSelector=spec.nodeName=another", "system:nodes", 403),
        ("?fieldSelector=spec.nodeName!=node", "system:nodes", 403),
        ("", "system:nodes", 403),
        ("?fieldSelector=spec.nodeName=node", "", 403),  # a name alone makes no kubelet
    ],
)
def test_a_kubelet_lists_the_slices_of_its_node(
    client: Client, selector: str, groups: str, code: int
) -> None:
    path = f"/apis/resource.k8s.io/v1/resourceslices{selector}"
    headers = {"impersonate_user": "system:node:node", "impersonate_group": groups}
    assert client.send("GET", path, None, **headers).status == code
