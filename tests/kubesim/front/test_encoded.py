"""Texts of objects are kept within bounds, and none is answered of another state than its own."""

from __future__ import annotations

import json

import pytest

from kube.values import Obj
from kubesim.front.encoded import EncodedObjects
from tests.kubesim.front.conftest import CLAIMS, Client, claim

_VERSION = "resource.k8s.io/v1"


class Counting(EncodedObjects):
    """Counts what has to be encoded."""

    encoded = 0

    def encode_other(self, obj: Obj, api_version: str) -> bytes:
        self.encoded += 1
        return super().encode_other(obj, api_version)

    @property
    def kept_bytes(self) -> int:
        return sum(len(text) for texts in (self._young, self._old) for text in texts.values())


def stored(number: int) -> Obj:
    obj = claim(f"claim-{number}")
    obj["metadata"]["resourceVersion"] = str(number)
    return obj


def test_what_is_asked_for_again_and_again_stays_and_the_rest_is_forgotten() -> None:
    encoded = Counting("1.37", max_bytes=20_000)
    for number in range(1, 501):
        for asked in (0, number):
            text = encoded.encode_stored(stored(asked), _VERSION)
            assert json.loads(b"{" + text)["metadata"]["name"] == f"claim-{asked}"
        assert encoded.kept_bytes <= 20_000
    assert encoded.encoded == 501
    encoded.encode_stored(stored(500), _VERSION)
    assert encoded.encoded == 501
    encoded.encode_stored(stored(1), _VERSION)
    assert encoded.encoded == 502


def test_each_version_has_a_text_of_its_own(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    for version, has_exactly in (("v1", True), ("v1beta1", False), ("v1beta2", True)):
        path = CLAIMS.replace("/v1/", f"/{version}/")
        item = client.send("GET", path).json()["items"][0]
        [request] = item["spec"]["devices"]["requests"]
        assert ("exactly" in request) == has_exactly


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_a_dry_run_is_answered_and_nobody_else_sees_it(client: Client, version: str) -> None:
    path = CLAIMS.replace("/v1/", f"/{version}/")
    obj = client.send("POST", path, claim("one") | {"apiVersion": f"resource.k8s.io/{version}"})
    changed = obj.json()
    changed["metadata"]["labels"] = {"dry": "run"}
    answer = client.send("PUT", f"{path}/one?dryRun=All", changed).json()
    assert answer["metadata"]["labels"] == {"dry": "run"}
    for seen in (client.send("GET", f"{path}/one").json(), client.send("GET", path).json()):
        [item] = seen.get("items", [seen])
        assert item["metadata"].get("labels") is None


def test_who_takes_the_last_finalizer_changes_no_state_before(client: Client) -> None:
    held = claim("one")
    held["metadata"]["finalizers"] = ["example.com/held"]
    created = client.send("POST", CLAIMS, held).json()
    client.send("DELETE", f"{CLAIMS}/one")
    waiting = client.send("GET", f"{CLAIMS}/one").json()
    released = {**waiting, "metadata": {**waiting["metadata"], "finalizers": []}}
    answer = client.send("PUT", f"{CLAIMS}/one", released).json()
    assert "finalizers" not in answer["metadata"]
    version = created["metadata"]["resourceVersion"]
    watch = client.stream(f"{CLAIMS}?watch=1&resourceVersion={version}&timeoutSeconds=0")
    seen = [(kind, "finalizers" in obj["metadata"]) for kind, obj in watch]
    assert seen == [("MODIFIED", True), ("DELETED", True)]
