"""What a container saw, read from its log as the probe printed it.

A log sends no events. So the container's state, which a watch does tell, says when it is worth
reading, and until the probe's last line is there the waiting check is asked to come back soon.
"""

from __future__ import annotations

from conformance import probe
from conformance.kubeapi.changes import Changes
from conformance.kubeapi.connection import Connection
from conformance.kubeapi.errors import PASSING
from conformance.scenario.expectations.base import ContainerView
from conformance.targets.base import ApiError, Obj, TargetError

_FIRST, _LONGEST = 0.02, 0.5  # seconds between two reads of one log
_PATIENCE = 2.0  # seconds for which one read is repeated
_AFTER_END = 10  # reads of a log after its container ended: the probe will not come any more


class Observer:
    """Reads probes of one namespace's pods; each container's run is read to its end only once."""

    def __init__(self, connection: Connection, changes: Changes, agent: str = "") -> None:
        self._connection = connection
        self._changes = changes
        self._agent = agent
        self._views: dict[str, ContainerView] = {}  # container id -> view
        self._tries: dict[str, int] = {}  # container id -> reads of an incomplete log

    def view(self, pod: Obj, container: str, *, waiting: bool) -> ContainerView | None:
        """What that container of the pod saw in its present run, None if it is not known yet.

        Args:
            pod: the pod, with its status.
            container: the container's name.
            waiting: a kubelet that does not answer now (it may be restarting) is asked again later.

        Raises:
            TargetError: the log may not be read; or, unless waiting, the kubelet does not answer.
        """
        status = _status_of(pod, container)
        run = (status or {}).get("containerID", "")
        if status is None or not run:
            return None
        if run in self._views:
            return self._views[run]
        ended = "terminated" in (status.get("state") or {})
        tries = self._tries.get(run, 0)
        if ended and tries > _AFTER_END:
            return None
        output = probe.parse(self._log(pod, container, waiting))
        if output is None:
            self._tries[run] = tries + 1
            self._changes.recheck_in(min(_FIRST * 2**tries, _LONGEST))
            return None
        self._views[run] = ContainerView(output.environment, output.device_nodes, output.outputs)
        return self._views[run]

    def _log(self, pod: Obj, container: str, waiting: bool) -> str:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
        try:
            text = self._connection.text(
                "GET",
                path,
                {"container": container},
                accept="*/*",
                agent=self._agent,
                patience=_PATIENCE,
            )
        except (ApiError, TargetError) as error:
            code = error.code if isinstance(error, ApiError) else 0
            if code in (400, 404):  # it waits to start, or is gone by now
                return ""
            if waiting and (code == 0 or code in PASSING):
                return ""
            raise TargetError(
                f"the log of container {container} of pod {meta['name']} cannot be read: {error}; "
                f"check that the API server reaches the kubelet of {pod['spec'].get('nodeName')}"
            ) from None
        return text.decode("utf-8", "replace")


def _status_of(pod: Obj, container: str) -> Obj | None:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for found in status.get(field) or []:
            if found["name"] == container:
                return dict(found)
    return None
