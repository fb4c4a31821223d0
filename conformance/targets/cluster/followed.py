"""Every state of the pods and claims of some namespaces, from watches."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.kubeapi.api import Api
from conformance.kubeapi.changes import Changes
from conformance.kubeapi.informers import InformerFactory
from conformance.kubeapi.store import version_of
from conformance.targets.base import TargetError
from conformance.targets.cluster.recorder import CATCH_UP_SECONDS, attach
from conformance.targets.following import Following


def follow(
    api: Api, informers: InformerFactory, changes: Changes, namespaces: Sequence[str], agent: str
) -> Following:
    """See `Scope.follow`.

    Args:
        api: the server.
        informers: whose watches are followed.
        changes: told of each state, too.
        namespaces: whose pods and claims.
        agent: who asks, for the server's log.
    """
    pods = api.discovery.find("v1", "Pod")
    claims = api.discovery.find(api.discovery.dra_version(), "ResourceClaim")
    places = [(resource, namespace) for resource in (pods, claims) for namespace in namespaces]
    heard = [informers.informer(*place) for place in places]

    def catch_up(following: Following) -> None:
        for resource, namespace in places:
            listed = api.list(resource, namespace, agent)
            versions = {item["metadata"]["uid"]: version_of(item) for item in listed}
            if not following.await_seen(versions, CATCH_UP_SECONDS):
                raise TargetError(
                    f"the watch of {resource.plural} is more than {CATCH_UP_SECONDS:g} s behind"
                    " the API server; is this machine overloaded?"
                )

    def stop(following: Following) -> None:
        for informer in heard:
            informer.unlisten(following.hear)

    following = Following(namespaces, catch_up, stop)
    for informer in heard:
        attach(informer, following.hear)
        changes.attach(informer)
    return following
