"""Which feature gates of a cluster are on or off; one that nothing tells about is unknown.

The API server's metrics say it. Where they may not be read, what cannot be changed in this minor is
known all the same, and most of the others show in what the API server keeps of an object: fields
behind a gate that is off are dropped without a word (``dropDisabledFields`` in
pkg/registry/resource). The objects are data, in ``scenarios/features.yaml``; they are created with
dry run, so nothing is stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.kubeapi.api import Api
from conformance.kubeapi.connection import Connection
from conformance.scenario.expectations.conditions import differences
from conformance.scenario.registry import GateProbe, load_registry
from conformance.targets.seam.values import ApiError, TargetError
from reference_allocator.gates import needed_by, settled

_METRIC = re.compile(rb'^kubernetes_feature_enabled\{name="([^"]+)"[^}]*\} ([01])', re.MULTILINE)
_NAMESPACE = "default"
"""Of namespaced objects; it is there in every cluster."""


def feature_gates(api: Api, version: str, *, only_read: bool = False) -> dict[str, bool]:
    """Gates that are known to be on or off.

    Args:
        api: of the cluster.
        version: the cluster's Kubernetes version.
        only_read: nothing is tried, not even with dry run.

    Raises:
        TargetError: no answer.
    """
    told = _told(api.connection)
    known = {**settled(version), **told}
    if told or only_read:
        return known
    features = load_registry().features.values()
    for feature in features:
        if feature.gate is not None and feature.probe is not None and feature.gate not in known:
            on = probe(api, feature.probe)
            if on is not None:
                known[feature.gate] = on
            if on:
                known |= dict.fromkeys(needed_by(feature.gate), True)
    return known


def probe(api: Api, wanted: GateProbe) -> bool | None:
    """Whether the API server keeps all that an object says; None if it does not let one see."""
    api_version, kind = wanted.object["apiVersion"], wanted.object["kind"]
    try:
        resource = api.discovery.find(api_version, kind)
        path = resource.path(_NAMESPACE if resource.namespaced else None)
        # Not strict: an older API server does not have the field at all.
        query = {"dryRun": "All", "fieldValidation": "Ignore"}
        kept = api.connection.request("POST", path, query, dict(wanted.object))
    except ApiError as error:
        return wanted.on_if_invalid if error.code == 422 else None
    return not any(differences(wanted.object, kept))


def _told(connection: Connection) -> Mapping[str, bool]:
    """What the API server's metrics say; nothing where they may not be read."""
    try:
        text = connection.text("GET", "/metrics", accept="text/plain", patience=5.0)
    except (ApiError, TargetError):
        return {}
    return {name.decode(): value == b"1" for name, value in _METRIC.findall(text)}
