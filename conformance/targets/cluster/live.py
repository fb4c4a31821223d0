"""A cluster that is followed for as long as one likes: what changed since one last asked.

Of an object only what a snapshot has is kept, and of its changes only the last one, so that what is
in memory grows with the cluster and not with time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from conformance.seam.pods import pick, reduced_pod
from conformance.targets.cluster.capabilities import feature_gates, server_versions
from conformance.targets.cluster.capture import keep_relevant, kinds_of, make_refusal
from conformance.targets.cluster.snapshots import TAINT_RULE, features_of
from kube.api import Api
from kube.base.errors import TargetError
from kube.errors import ApiError
from kube.informer import Informer
from kube.values import Obj
from reference_allocator.features import Features

Changed = Mapping[tuple[str, str], Obj | None]
"""Kind and uid -> the object as it is now, None where it is gone."""


class LiveCluster:
    """Follows slices, classes, claims, nodes and pods of a cluster. Stop it in the end.

    Attributes:
        kubernetes, features: of the cluster, when it was opened.
        sees_pods: whether pods may be followed.
    """

    kubernetes: str
    features: Features

    def __init__(self, api: Api) -> None:
        self.sees_pods = True
        self._api = api
        self._informers: list[Informer] = []
        self._condition = threading.Condition()
        self._changed: dict[tuple[str, str], Obj | None] = {}
        self._uids: dict[str, set[str]] = {}

    def start(self, missing: Callable[[str], object]) -> None:
        """List everything once, then follow it.

        ``missing``: told what may not be followed, where there is something to say without it.
        Raises TargetError: there is no answer, or what every answer depends on may not be followed.
        """
        api = self._api
        try:
            self.kubernetes = server_versions(api)[1]
            gates = feature_gates(api, self.kubernetes, only_read=True)
            self.features = features_of(self.kubernetes, gates)
            kinds = kinds_of(api)
            kinds.pop(TAINT_RULE, None)  # taints are not judged: they may come at any time
            for resource in kinds.values():
                self._follow(
                    Informer(api.connection, resource, keep=partial(_versioned, keep_relevant))
                )
            pods = api.discovery.find("v1", "Pod")
        except ApiError as error:
            raise make_refusal(api, error) from None
        try:
            self._follow(Informer(api.connection, pods, keep=partial(_versioned, _pod)))
        except ApiError as error:
            self.sees_pods = False
            missing(f"{make_refusal(api, error)}; no pod is called gone")

    def changes(self, seconds: float) -> Changed:
        """Return what changed since the last call; wait for something so many seconds at most."""
        with self._condition:
            if not self._changed:
                self._condition.wait(seconds)
            changed, self._changed = self._changed, {}
        return changed

    def troubles(self) -> dict[str, TargetError | None]:
        """Return plural of each kind that is followed -> why it is not at the moment, or None."""
        return {
            item.resource.plural: item.trouble[1] if item.trouble else None
            for item in self._informers
        }

    def stop(self) -> None:
        for informer in self._informers:
            informer.stop()

    def _follow(self, informer: Informer) -> None:
        informer.listen(partial(self._take, informer.resource.kind))
        informer.start()
        self._informers.append(informer)

    def _take(self, kind: str, change: str, obj: Obj) -> None:
        with self._condition:
            known_uids = self._uids.setdefault(kind, set())
            if change == "LISTED":
                listed = {item["metadata"]["uid"]: item for item in obj["items"]}
                self._changed |= {(kind, uid): None for uid in known_uids - listed.keys()}
                self._changed |= {(kind, uid): item for uid, item in listed.items()}
                self._uids[kind] = set(listed)
            elif change in {"ADDED", "MODIFIED", "DELETED"}:
                uid, gone = obj["metadata"]["uid"], change == "DELETED"
                self._changed[kind, uid] = None if gone else obj
                (known_uids.discard if gone else known_uids.add)(uid)
            self._condition.notify_all()


def _versioned(keep: Callable[[Obj], Obj], obj: Obj) -> Obj:
    shortened = keep(obj)
    shortened["metadata"] |= pick(obj["metadata"], "resourceVersion")
    return shortened


def _pod(pod: Obj) -> Obj:
    """Return a pod as a snapshot has it; without claims, only that it is there and how it ended."""
    meta = pick(pod["metadata"], "name", "namespace", "uid")
    few = {"metadata": meta, "spec": {}, "status": pick(pod.get("status"), "phase")}
    return reduced_pod(pod, ()) or few
