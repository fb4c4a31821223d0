"""kr8s: objects from a file, conditions waited for, patches, labels, a watch.

Usage: KUBECONFIG=FILE kr8s_client.py OBJECTS; prints a line for each thing that it has seen.
"""

import sys
import threading

import kr8s
from kr8s.objects import Pod, new_class, objects_from_files

# kr8s finds these again by their kind when it reads a file; it would look for deviceclasss.
VERSION = "resource.k8s.io/v1"
ResourceSlice = new_class("ResourceSlice", VERSION, asyncio=False, namespaced=False)
DeviceClass = new_class(
    "DeviceClass", VERSION, asyncio=False, namespaced=False, plural="deviceclasses"
)
ResourceClaim = new_class("ResourceClaim", VERSION, asyncio=False)


def read_objects(api: kr8s.Api, file: str) -> list[kr8s.objects.APIObject]:
    """Return the objects of a file, as kr8s reads it."""
    return objects_from_files(file, api=api)


def main(objects: str) -> None:
    api = kr8s.api()
    print("version", api.version()["gitVersion"])
    created = read_objects(api, objects)
    for obj in created:
        obj.create()
    slices, device_class, claim, pod = created
    pod.wait("condition=PodScheduled", timeout=30)
    print("node:", Pod.get("pod", namespace="default", api=api).spec.nodeName)

    changes: list[str] = []
    labelled = threading.Event()

    def follow() -> None:
        for change, changed in api.watch("resourceclaims.resource.k8s.io", namespace="default"):
            if changed.labels.get("seen") == "yes":
                changes.append(change)
                labelled.set()
                return

    watching = threading.Thread(target=follow, daemon=True)
    watching.start()
    claim.refresh()
    print("device:", claim.raw["status"]["allocation"]["devices"]["results"][0]["device"])
    claim.label({"seen": "yes"})
    print("watch:", labelled.wait(30) and bool(changes))
    print("by label:", [found.name for found in api.get("pods", label_selector="step=one")])
    pod.delete(grace_period=0)
    pod.wait("delete", timeout=30)
    for obj in (claim, device_class, slices):
        obj.delete()
    claim.wait("delete", timeout=30)
    print("left:", len(list(api.get("resourceclaims.resource.k8s.io", namespace=kr8s.ALL))))


if __name__ == "__main__":
    main(*sys.argv[1:])
