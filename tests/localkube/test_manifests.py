"""A driver's manifests: what kubectl reads is made with the run's label, awaited and removed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube.nodes import RUN_LABEL
from localkube import manifests
from localkube.base import ClusterAccess, ClusterError, ClusterUsageError
from localkube.manifests import install_objects, render_manifests
from tests.kube.fake_api import FakeApi

DRIVER = "gpu.example.com"

_KUBECTL = """#!{python}
import pathlib, sys
(pathlib.Path(__file__).parent / "calls").write_text(" ".join(sys.argv[1:]))
name = "kustomized" if sys.argv[1] == "kustomize" else "printed"
print((pathlib.Path(__file__).parent / name).read_text())
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stand-in for kubectl, and what it prints."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(_KUBECTL.format(python=sys.executable))
    (folder / "kubectl").chmod(0o755)
    (folder / "kustomized").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"
    )
    (folder / "printed").write_text(
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}\n'
        '{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret",'
        ' "metadata": {"name": "s"}}]}\n'
    )
    monkeypatch.setenv("PATH", str(folder))
    return folder


def names(objects: list[Any]) -> list[str]:
    return [one["metadata"]["name"] for one in objects]


def test_a_kustomization_is_built_and_namespaces_come_first(kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").touch()
    assert names(render_manifests(str(tmp_path))) == ["b", "a"]
    assert (kubectl / "calls").read_text() == f"kustomize -- {tmp_path}"


def test_what_is_behind_a_url_is_a_kustomization_unless_it_is_a_file(kubectl: Path) -> None:
    assert names(render_manifests("https://example.com/driver//deploy?ref=v1")) == ["b", "a"]
    assert names(render_manifests("https://example.com/driver.yaml")) == ["p", "s"]
    assert "--local --filename=https://example.com/driver.yaml" in (kubectl / "calls").read_text()


def test_a_folder_without_kustomization_is_read_file_by_file(kubectl: Path, tmp_path: Path) -> None:
    assert names(render_manifests(str(tmp_path))) == ["p", "s"]
    assert f"--filename={tmp_path}" in (kubectl / "calls").read_text()


@pytest.mark.parametrize("text", ["", "[1]", '{"kind": "Pod"}', "{", '{"items": 3}'])
def test_what_is_no_manifest_is_said(kubectl: Path, tmp_path: Path, text: str) -> None:
    (kubectl / "printed").write_text(text)
    with pytest.raises(ClusterUsageError, match=f"--driver-manifests {tmp_path}: "):
        render_manifests(str(tmp_path))


def test_a_folder_that_is_not_there_and_a_missing_kubectl_are_said(
    kubectl: Path, tmp_path: Path
) -> None:
    with pytest.raises(ClusterUsageError, match="gone: no such file or folder"):
        render_manifests(str(tmp_path / "gone"))
    (kubectl / "kubectl").unlink()
    with pytest.raises(ClusterUsageError, match="needs the kubectl command"):
        render_manifests(str(tmp_path))


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.close()


@pytest.fixture
def access(api: FakeApi, tmp_path: Path) -> ClusterAccess:
    return ClusterAccess(api.kubeconfig(tmp_path / "kubeconfig"), "fake", "v1.37.1", "i", ())


def account(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "d"},
    }


def accounts(api: FakeApi) -> list[Any]:
    return [obj for (plural, _, _), obj in api.objects.items() if plural == "serviceaccounts"]


def slices(api: FakeApi) -> None:
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "node-a", "pool": pool, "devices": []}
    api.put("resourceslices", {"metadata": {"name": "s"}, "spec": spec})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_READY_SECONDS", "_SERVED_SECONDS", "_GONE_SECONDS"):
        monkeypatch.setattr(manifests, name, 1.0)
    monkeypatch.setattr(manifests, "_SETTLE_SECONDS", 0.1)


@pytest.mark.parametrize("removes", [True, False])
def test_a_driver_is_there_for_as_long_as_the_context_lasts(
    api: FakeApi, access: ClusterAccess, removes: bool
) -> None:
    slices(api)
    with install_objects([account("x")], access, DRIVER, lambda _line: None, removes=removes):
        [made] = accounts(api)
        assert made["metadata"]["labels"][RUN_LABEL].startswith("driver-")
    assert len(accounts(api)) == (0 if removes else 1)


def test_what_is_there_already_is_refused_and_only_what_was_made_is_removed(
    api: FakeApi, access: ClusterAccess
) -> None:
    api.put("serviceaccounts", account("theirs"))
    objects = [account("ours"), account("theirs")]
    with (
        pytest.raises(ClusterUsageError, match=r"ServiceAccount theirs.*installed already"),
        install_objects(objects, access, DRIVER, lambda _line: None, removes=True),
    ):
        pytest.fail("installed")
    assert names(accounts(api)) == ["theirs"]


def test_a_driver_that_publishes_nothing_is_said_and_removed(
    api: FakeApi, access: ClusterAccess
) -> None:
    with (
        pytest.raises(ClusterError, match=f"{DRIVER} has published no ResourceSlices"),
        install_objects([account("x")], access, DRIVER, lambda _line: None, removes=True),
    ):
        pytest.fail("installed")
    assert accounts(api) == []
