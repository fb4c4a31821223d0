"""What helps to see why a scenario failed, gathered before its cleanup.

Each part is fetched on its own, so that one that cannot be read costs only itself. Secrets are
never read, and whatever looks like a credential is left out of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml

from conformance.targets.cluster.snapshots import taint_rules
from kube.api import Api
from kube.base.errors import TargetError
from kube.base.redaction import redact_log, redact_object
from kube.errors import ApiError
from kube.values import Obj
from localkube.processes.tools import read_tail

_TAIL_LINES = 200
_PATIENCE = 5.0
_DRA = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")


def diagnose(api: Api, logs: Mapping[str, Path], namespace: str) -> dict[str, str]:
    """Return name -> text: ``pods.yaml``, ``events.txt``, ``logs/POD/CONTAINER.log``, and so on.

    Args:
        api: where to ask.
        logs: component name -> its log file.
    """
    texts: dict[str, str] = {}
    pods: list[Obj] = []

    def objects(api_version: str, kind: str) -> list[Obj]:
        return api.list(api.discovery.find(api_version, kind), namespace, namespace)

    def dump(api_version: str, kind: str) -> str:
        items = objects(api_version, kind)
        if kind == "Pod":
            pods.extend(items)
        if kind == "Node":
            items = [_node(item) for item in items]
        return yaml.safe_dump_all(map(redact_object, items), sort_keys=False, width=120)

    def dra(kind: str) -> str:
        return dump(api.discovery.dra_version(), kind)

    def taints() -> str:
        rules = taint_rules(api.discovery)
        return dump(rules.api_version, rules.kind) if rules is not None else ""

    _add_text(texts, "pods.yaml", partial(dump, "v1", "Pod"))
    _add_text(texts, "jobs.yaml", partial(dump, "batch/v1", "Job"))
    for kind in _DRA:
        plural = kind.lower() + ("es" if kind.endswith("s") else "s")
        _add_text(texts, f"{plural}.yaml", partial(dra, kind))
    _add_text(texts, "devicetaintrules.yaml", taints)
    _add_text(texts, "nodes.yaml", partial(dump, "v1", "Node"))
    _add_text(texts, "events.txt", lambda: _events(objects("v1", "Event")))
    for pod in pods:
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            if status.get("containerID"):
                name = f"logs/{pod['metadata']['name']}/{status['name']}.log"
                _add_text(texts, name, partial(_log, api, pod, status["name"]))
    for component, path in logs.items():
        _add_text(texts, f"components/{component}.log", partial(read_tail, path, _TAIL_LINES))
    return {name: text for name, text in texts.items() if text}


def _add_text(texts: dict[str, str], name: str, fetch: Callable[[], str]) -> None:
    try:
        texts[name] = redact_log(fetch())
    except ApiError as error:
        if error.code != 404:
            texts[name] = redact_log(f"cannot be read: {error}")
    except (TargetError, OSError) as error:
        texts[name] = redact_log(f"cannot be read: {error}")


def _node(node: Obj) -> Obj:
    status = node.get("status") or {}
    fields = ("conditions", "allocatable", "nodeInfo", "declaredFeatures")
    return {**node, "status": {name: status[name] for name in fields if name in status}}


def _events(events: list[Obj]) -> str:
    def moment(event: Obj) -> str:
        series: Mapping[str, str] = event.get("series") or {}
        return str(
            series.get("lastObservedTime")
            or event.get("lastTimestamp")
            or event.get("eventTime")
            or event["metadata"].get("creationTimestamp")
            or ""
        )

    lines = []
    for event in sorted(events, key=moment):
        about = event.get("involvedObject") or {}
        source = event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
        lines.append(
            f"{moment(event)} {event.get('type', '')} {event.get('reason', '')} "
            f"{about.get('kind', '')}/{about.get('name', '')} ({source}): "
            f"{' '.join((event.get('message') or '').split())}"
        )
    return "\n".join(lines)


def _log(api: Api, pod: Obj, container: str) -> str:
    meta = pod["metadata"]
    text = api.connection.read_text(
        "GET",
        f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log",
        {"container": container, "tailLines": str(_TAIL_LINES)},
        accept="*/*",
        patience=_PATIENCE,
    )
    return text.decode("utf-8", "replace")
