"""CDI specs of nodes, and metrics of components, as they are read.

A driver writes one spec for each prepared claim and removes it when the claim is unprepared, so a
claim's uid in a file name or in a spec says that the claim is prepared. A kubelet's metrics are
read through the API server, which needs the permission for ``nodes/proxy``.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from kube.base import strictyaml
from kube.base.errors import TargetError
from kube.base.files import read_regular
from kube.base.strictjson import check_bounds
from kube.cdi.spec import MAX_BYTES
from kube.connection import Connection
from kube.errors import ApiError
from kube.observations import METRICS, PREPARED, Sample
from kube.values import Obj

_MAX_VALUES = 100_000  # of a spec: a hundred for each of a thousand devices
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def spec_files(roots: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of files in folders of this machine, but for those that vanish."""
    for root in roots:
        for path in sorted(root.glob("*")) if root.is_dir() else ():
            with contextlib.suppress(OSError):
                yield path.name, read_regular(path, MAX_BYTES)


def claims_in(files: Iterable[tuple[str, bytes]]) -> Mapping[str, Sequence[str]]:
    """Return claim uid -> names of the spec files that mention it, sorted.

    A file that is half written is left out (drivers write under another name and rename, so such a
    file will be read the next time).
    """
    names_by_uid: dict[str, set[str]] = {}
    for name, spec in specs_in(files):
        for uid in {*_UID.findall(name), *_uids(spec)}:
            names_by_uid.setdefault(uid, set()).add(name)
    return {uid: tuple(sorted(names)) for uid, names in sorted(names_by_uid.items())}


def specs_in(files: Iterable[tuple[str, bytes]]) -> list[tuple[str, Obj]]:
    """Return name and content of the files that are specs; as for `claims_in`."""
    parsed = (
        (name, _parse(name, content))
        for name, content in files
        if name.endswith((".json", ".yaml", ".yml"))
    )
    return [(name, spec) for name, spec in parsed if isinstance(spec, dict)]


def _parse(name: str, content: bytes) -> Any:
    try:
        if not name.endswith(".json"):
            return strictyaml.load(content.decode())
        check_bounds(content, _MAX_VALUES)
        return json.loads(content.decode())
    except (ValueError, yaml.YAMLError):
        return None


def _uids(value: Any) -> set[str]:
    if isinstance(value, str):
        return set(_UID.findall(value))
    if isinstance(value, Mapping):
        return {uid for pair in value.items() for item in pair for uid in _uids(item)}
    if isinstance(value, list):
        return {uid for item in value for uid in _uids(item)}
    return set()


_PATIENCE = 2.0  # seconds


def read_kubelet_metrics(connection: Connection, node: str, agent: str = "") -> str:
    """Return the metrics of a node's kubelet as text. Raises ApiError or TargetError."""
    path = f"/api/v1/nodes/{node}/proxy/metrics"
    text = connection.read_text("GET", path, accept="text/plain", patience=_PATIENCE, agent=agent)
    return text.decode("utf-8", "replace")


def samples_in(text: str, name: str) -> Sequence[Sample] | None:
    """Return the series of a metric, by its name in any minor; None: this is no such text."""
    names = (name, *METRICS[name].formerly)
    # Alone, for there are thousands of others.
    lines = [line for line in text.splitlines() if line.startswith(names)]
    try:
        return [
            Sample(sample.labels, float(sample.value))
            for family in text_string_to_metric_families("\n".join(lines) + "\n")
            for sample in family.samples
            if sample.name in names
        ]
    except ValueError:
        return None


def prepared_claims(connection: Connection, node: str) -> int | None:
    """Return how many claims a node's kubelet has prepared; None: it does not tell.

    Raises ApiError or TargetError.
    """
    samples = samples_in(read_kubelet_metrics(connection, node), PREPARED)
    # One series counts claims, the others those of each driver.
    counts = [item.value for item in samples or () if item.labels.get("driver_name") == "<any>"]
    return int(counts[0]) if counts else None


def explain_no_metrics(connection: Connection, nodes: Sequence[str]) -> str:
    """Explain why the kubelets do not tell; empty if they do, as far as the first one shows."""
    try:
        samples = (
            samples_in(read_kubelet_metrics(connection, nodes[0]), PREPARED) if nodes else True
        )
    except (ApiError, TargetError) as error:
        return f"{error}; ci/rbac/kubelet-metrics.yaml has the permission"
    return "" if samples else f"the kubelet of {nodes[0]} has no metric {PREPARED}"
