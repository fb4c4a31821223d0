"""The official Python client: objects from a file, typed and dynamic calls, a controller's loop.

Usage: KUBECONFIG=FILE kubernetes_client.py OBJECTS; prints a line for each thing that it has seen.
"""

import sys
import time

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

NOTE = "example.com/device"


def main(objects: str) -> None:
    api_client = config.new_client_from_config()
    resources = client.ResourceV1Api(api_client)
    print("version", client.VersionApi(api_client).get_code().git_version)
    utils.create_from_yaml(api_client, objects)
    try:
        utils.create_from_yaml(api_client, objects)
    except utils.FailToCreateError as error:
        print("again:", *(refusal.reason for refusal in error.api_exceptions))

    # A controller's loop: it notes on each claim which device it has. The watch is that of the
    # dynamic client, because the typed one finds no model: it asks for V1ResourceClaim, and the
    # client calls it ResourceV1ResourceClaim.
    kinds = dynamic.DynamicClient(api_client).resources
    claims = kinds.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
    events = watch.Watch()
    for event in claims.watch(namespace="default", timeout=30, watcher=events):
        claim = event["raw_object"]
        name, annotations = claim["metadata"]["name"], claim["metadata"].get("annotations", {})
        if NOTE in annotations:
            print("watch: the device of", name, "is", annotations[NOTE])
            events.stop()
        elif allocation := claim.get("status", {}).get("allocation"):
            note = {
                "metadata": {"annotations": {NOTE: allocation["devices"]["results"][0]["device"]}}
            }
            resources.patch_namespaced_resource_claim(name, "default", note)

    applied = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "labels": {"applied": "yes"}},
    }
    labels = claims.server_side_apply(
        body=applied, namespace="default", field_manager="python"
    ).metadata.labels
    print("server-side apply:", dict(labels))
    stale = resources.read_namespaced_resource_claim("gpu", "default")
    stale.metadata.resource_version = "1"
    try:
        resources.replace_namespaced_resource_claim("gpu", "default", stale)
    except ApiException as error:
        print("replace of an old version:", error.status, error.reason)

    page = resources.list_resource_slice(limit=1)
    print("slices:", [device.name for device in page.items[0].spec.devices])
    pods = kinds.get(api_version="v1", kind="Pod")
    pods.delete("pod", "default", body={"gracePeriodSeconds": 0})
    claims.delete("gpu", "default")
    deadline = time.monotonic() + 30
    while resources.list_namespaced_resource_claim("default").items:
        assert time.monotonic() < deadline, "the claim stays"
        time.sleep(0.05)
    resources.delete_collection_resource_slice()
    resources.delete_collection_device_class()
    print("slices left:", len(resources.list_resource_slice().items))


if __name__ == "__main__":
    main(*sys.argv[1:])
