"""A driver that its vendor's manifests install: made before a run, removed after it.

kubectl renders, because manifests are kustomizations as often as files, here or behind a URL. What
it gives is made by our own client, with the run's label and only where nothing of that name is
there, so that nothing else is ever changed or removed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import yaml

from kube.api import Api
from kube.base import strictyaml
from kube.base.text import one_line
from kube.connection import Connection
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Obj
from localkube.base import ClusterAccess, ClusterError, ClusterUsageError, Progress

_MAX_NODES = 500_000  # Keys and values; the CustomResourceDefinitions of an operator have many.

_FIRST = ("Namespace", "CustomResourceDefinition")
_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_FILES = (".yaml", ".yml", ".json")
_RENDER_SECONDS = 300.0  # a repository may have to be fetched
_READY_SECONDS = 300.0
_SETTLE_SECONDS = 15.0
_GONE_SECONDS = 120.0
_SERVED_SECONDS = 15.0


def render_manifests(given: str) -> list[Obj]:
    """Return the objects of a kustomization, of a folder's files, of a file, or of a URL's file.

    Raises ClusterUsageError: there is no kubectl, or it finds no manifests there.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise ClusterUsageError("--driver-manifests needs the kubectl command, to read them")
    path = Path(given)
    remote = "://" in given
    if not remote and not path.exists():
        raise ClusterUsageError(f"--driver-manifests {given}: no such file or folder")
    is_files = given.endswith(_FILES) if remote else path.is_file()
    if not remote and path.is_dir():
        is_files = not any((path / name).is_file() for name in _KUSTOMIZATIONS)
    # `label --local` talks to no server, and knows no kind that it would have to look up.
    files = ["label", "--local", f"--filename={given}", "--output=json", f"{RUN_LABEL}=x"]
    command = [kubectl, *(files if is_files else ["kustomize", "--", given])]
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_RENDER_SECONDS,
        )
        errors = one_line(completed.stderr.decode(errors="replace"))[-500:]
        text = completed.stdout.decode()
        documents = _json_values(text) if is_files else list(strictyaml.load_all(text, _MAX_NODES))
        objects = [
            item for content in documents if content for item in content.get("items", [content])
        ]
        for obj in objects:
            _ = obj["metadata"]["name"], obj["apiVersion"], obj["kind"]
    except (subprocess.TimeoutExpired, ValueError, yaml.YAMLError) as error:
        raise ClusterUsageError(f"--driver-manifests {given}: {one_line(str(error))}") from None
    except (LookupError, TypeError, AttributeError):
        raise ClusterUsageError(f"--driver-manifests {given}: not all are objects") from None
    if completed.returncode != 0 or not objects:
        raise ClusterUsageError(f"--driver-manifests {given}: {errors or 'no objects are in it'}")
    return sorted(objects, key=lambda obj: (obj["kind"] not in _FIRST, obj["kind"] in _LAST))


def _json_values(text: str) -> list[Obj]:
    """Return JSON values that stand one after another, as kubectl prints several objects."""
    decoder, position, values = json.JSONDecoder(), 0, []
    while text[position:].strip():
        value, position = decoder.raw_decode(text, len(text) - len(text[position:].lstrip()))
        values.append(value)
    return values


@contextmanager
def install_objects(
    objects: Sequence[Obj], access: ClusterAccess, driver: str, progress: Progress, removes: bool
) -> Iterator[None]:
    """Make the objects and wait for the driver's slices; perhaps delete them at the end.

    Args:
        objects: as `render` gives them.
        removes: whether to remove it; no where the whole cluster goes.

    Raises:
        ClusterUsageError: one of the objects is there already, or the server refuses it.
        ClusterError: the driver publishes nothing, or could not be removed.
    """
    run = f"driver-{uuid.uuid4().hex[:8]}"
    with closing(Connection.open(access.kubeconfig, access.context)) as connection:
        api = Api(connection)
        paths: list[str] = []
        try:
            progress(f"installing the driver {driver} ({len(objects)} objects, {RUN_LABEL}={run})")
            paths.extend(_create(api, obj, run) for obj in objects)
            _await_slices(api, paths, driver, progress)
            yield
        finally:
            if removes:
                progress(f"removing the driver {driver}")
                _remove(api, paths)


def _create(api: Api, obj: Obj, run: str) -> str:
    deadline = time.monotonic() + _SERVED_SECONDS
    meta = obj["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), RUN_LABEL: run}
    while True:
        try:
            resource = api.discovery.find(obj["apiVersion"], obj["kind"])
            namespace = (meta.get("namespace") or "default") if resource.namespaced else None
            api.connection.request("POST", resource.path(namespace), body=obj)
        except ApiError as error:
            if error.code == 404 and time.monotonic() < deadline:
                time.sleep(0.5)  # its definition is one of the manifests, and is served soon
                continue
            hint = ": is the driver installed already? Then leave --driver-manifests out"
            raise ClusterUsageError(
                f"--driver-manifests: {obj['kind']} {meta['name']}: {one_line(error.message)}"
                f"{hint if error.code == 409 else ''}"
            ) from None
        return resource.path(namespace, meta["name"])


def _await_slices(api: Api, paths: Sequence[str], driver: str, progress: Progress) -> None:
    """Return when each node that a DaemonSet runs on has slices, or nothing more comes."""
    progress(f"waiting for the ResourceSlices of {driver}")
    version = api.discovery.dra_version()
    slices = api.discovery.find(version, "ResourceSlice")
    deadline, changed = time.monotonic() + _READY_SECONDS, time.monotonic()
    nodes_before: set[str] = set()
    while time.monotonic() < deadline:
        sets = [api.connection.request("GET", path) for path in paths if "/daemonsets/" in path]
        states = [daemon_set.get("status") or {} for daemon_set in sets]
        ready = all(0 < s.get("desiredNumberScheduled", 0) == s.get("numberReady") for s in states)
        specs = [item["spec"] for item in api.list(slices) if item["spec"].get("driver") == driver]
        nodes = {spec.get("nodeName") or spec["pool"]["name"] for spec in specs}
        if nodes != nodes_before or not ready:
            nodes_before, changed = nodes, time.monotonic()
        most = max((s.get("desiredNumberScheduled", 0) for s in states), default=0)
        settled = time.monotonic() - changed > _SETTLE_SECONDS
        if ready and nodes and (len(nodes) >= most > 0 or settled):
            progress(f"{driver} has published slices of {', '.join(sorted(nodes))}")
            return
        time.sleep(0.5)
    pods = api.list(api.discovery.find("v1", "Pod"))
    descriptions = [f"{pod['metadata']['name']} is {pod['status'].get('phase')}" for pod in pods]
    raise ClusterError(
        f"the driver {driver} has published no ResourceSlices {_READY_SECONDS:g} s after it was "
        f"installed (is that the name in the profile?); pods: {', '.join(descriptions)}"
    )


def _remove(api: Api, paths: Sequence[str]) -> None:
    """Delete what was made, users before what they use, and see it gone."""
    deadline = time.monotonic() + _GONE_SECONDS
    body = {"propagationPolicy": "Foreground"}
    remaining = list(reversed(paths))
    for path in remaining:
        with contextlib.suppress(ApiError):
            api.connection.request("DELETE", path, body=body)
    while remaining and time.monotonic() < deadline:
        remaining = [path for path in remaining if _is_there(api, path)]
        time.sleep(0.5 if remaining else 0)
    if remaining:
        raise ClusterError(f"the driver could not be removed; still there: {', '.join(remaining)}")


def _is_there(api: Api, path: str) -> bool:
    try:
        api.connection.request("GET", path)
    except ApiError as error:
        return error.code != 404
    return True
