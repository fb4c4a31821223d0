"""One problem among others on one cluster: names of its own, and nodes of its own.

Drivers, classes, attributes and taints of a problem are of the domain ``example.com``; on a cluster
that is a domain of the problem alone. A pool that is for all nodes is for those of the problem,
unless it is whole in one slice: a request for All looks at every pool that a node can reach, also
at those that its class admits no device of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.engine.run.steps import hollow_node
from conformance.fuzz.problem import DOMAIN, LISTS, objects_of
from kube.nodes import RUN_LABEL
from kube.values import Obj

TEAM = "dra-conformance.dev/fuzz-nodes"
BATCH = "dra-conformance.dev/fuzz-batch"
_NODE = re.compile(r'"node-(\d+)"')


@dataclass(frozen=True, slots=True)
class ProblemScope:
    """The names and nodes that a problem has for itself on a cluster.

    Attributes:
        token: part of the names of its objects; of lower-case letters and digits, unique.
        team: of its nodes: their label's value, and the beginning of their names.
        labels: of all its objects.
    """

    token: str
    team: str
    namespace: str
    labels: Mapping[str, str]

    def list_objects(self, document: Obj) -> Iterator[Obj]:
        """Yield what is to be created, the pods last; claims in use with their status."""
        text = json.dumps({name: document.get(name, []) for name in LISTS}).replace(
            DOMAIN, f"{self.token}.{DOMAIN}"
        )
        renamed = json.loads(_NODE.sub(lambda match: f'"{self.team}-{match[1]}"', text))
        status = {item["metadata"]["name"]: item.get("status") for item in renamed["allocated"]}
        for obj in objects_of(renamed):
            name = obj["metadata"]["name"]
            if obj["kind"] == "ResourceSlice":
                self._restrict_to_team(obj["spec"])
            if obj["kind"] == "Pod":
                for entry in obj["spec"].get("resourceClaims", ()):
                    entry["resourceClaimName"] += f"-{self.token}"
                obj["spec"]["nodeSelector"] = {TEAM: self.team}
            meta: Obj = {"labels": dict(self.labels)}
            meta["name"] = name if obj["kind"] == "DeviceClass" else f"{name}-{self.token}"
            if obj["kind"] in ("Pod", "ResourceClaim"):
                meta["namespace"] = self.namespace
            if obj["kind"] == "ResourceClaim" and name in status:
                obj["status"] = status[name]
            obj["metadata"] = meta
            yield obj

    def restore_names(self, document: Obj) -> Obj:
        """Return a document of the cluster with the problem's own names again."""
        text = json.dumps(document)
        for cluster_text, problem_text in (
            (f"{self.token}.{DOMAIN}", DOMAIN),
            (f"-{self.token}", ""),
            (f"{self.team}-", "node-"),
            (f'"{self.namespace}"', '"default"'),
        ):
            text = text.replace(cluster_text, problem_text)
        restored: Obj = json.loads(text)
        return restored

    def _restrict_to_team(self, spec: Obj) -> None:
        whole = spec["pool"]["resourceSliceCount"] == 1 and not spec.get("perDeviceNodeSelection")
        for holder in (spec, *(spec.get("devices") or ())):
            if holder.get("allNodes") and not whole:
                del holder["allNodes"]
                holder["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": []}]}
            for term in (holder.get("nodeSelector") or {}).get("nodeSelectorTerms", ()):
                ours = {"key": TEAM, "operator": "In", "values": [self.team]}
                term["matchExpressions"] = [*term.get("matchExpressions", ()), ours]


def nodes_of(document: Obj, team: str, run: str) -> list[Obj]:
    """Return the nodes of a problem as hollow nodes of a team, with room for many pods."""
    hollow_nodes = []
    for node in document["nodes"]:
        name = node["metadata"]["name"].replace("node", team)
        hollow = hollow_node(name, node["metadata"]["name"])
        hollow["metadata"]["labels"] |= {
            **node["metadata"].get("labels", {}),
            TEAM: team,
            RUN_LABEL: run,
        }
        if node.get("status"):
            hollow["status"] |= node["status"]
        hollow_nodes.append(hollow)
    return hollow_nodes


def nodes_key(document: Obj) -> str:
    """Return a key that is the same for problems that can use the same nodes, one after another."""
    return json.dumps(document["nodes"], sort_keys=True)
