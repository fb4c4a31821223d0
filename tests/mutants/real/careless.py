"""A scheduler that minds no claim: it binds each pod that asks for it, to the first node.

``python -m tests.mutants.real.careless NAME``; the cluster is that of KUBECONFIG.
"""

from __future__ import annotations

import sys
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException


def main(name: str) -> None:
    """Bind pods until the process is ended."""
    config.load_kube_config()  # of KUBECONFIG
    core = client.CoreV1Api()
    while True:
        pods = watch.Watch().stream(
            core.list_pod_for_all_namespaces, field_selector="spec.nodeName=", timeout_seconds=60
        )
        for event in pods:
            pod = event["object"]
            if event["type"] != "DELETED" and pod.spec.scheduler_name == name:
                _bind(core, pod)


def _bind(core: client.CoreV1Api, pod: Any) -> None:
    nodes = core.list_node().items
    if not nodes:
        return
    body = client.V1Binding(
        metadata=client.V1ObjectMeta(name=pod.metadata.name, uid=pod.metadata.uid),
        target=client.V1ObjectReference(kind="Node", name=nodes[0].metadata.name),
    )
    try:
        core.create_namespaced_binding(pod.metadata.namespace, body, _preload_content=False)
    except ApiException as error:
        if error.status not in (404, 409):  # gone, or bound by another scheduler
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
