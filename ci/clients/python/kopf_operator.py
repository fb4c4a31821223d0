"""kopf: an operator of claims, with handlers of creation, of a field, of deletion, and a finalizer.

Usage: KUBECONFIG=FILE kopf_operator.py OBJECTS; prints a line for each thing that it has seen.
"""

import asyncio
import sys
import threading
import time

import kopf
import kr8s
from kr8s_client import read_objects

CLAIMS = ("resource.k8s.io", "v1", "resourceclaims")
handled: list[str] = []


@kopf.on.create(*CLAIMS)
def label_claim(name, patch, **_):
    handled.append(f"created {name}")
    patch.metadata.labels["handled"] = "yes"


@kopf.on.field(*CLAIMS, field="status.allocation")
def note_allocation(name, new, body, **_):
    if new:
        handled.append(f"allocated {name}: {new['devices']['results'][0]['device']}")
        kopf.info(body, reason="Allocated", message="it has a device")


@kopf.on.delete(*CLAIMS)
def note_deletion(name, **_):
    handled.append(f"deleted {name}")


def await_line(line: str) -> None:
    deadline = time.monotonic() + 30
    while line not in handled:
        assert time.monotonic() < deadline, (line, handled)
        time.sleep(0.05)
    print(line)


def main(objects: str) -> None:
    ready, stop = threading.Event(), threading.Event()
    operator = threading.Thread(
        target=lambda: asyncio.run(
            kopf.operator(standalone=True, namespaces=["default"], ready_flag=ready, stop_flag=stop)
        )
    )
    operator.start()
    try:
        assert ready.wait(30), "the operator does not become ready"
        api = kr8s.api()
        created = read_objects(api, objects)
        for obj in created:
            obj.create()
        slices, device_class, claim, pod = created
        await_line("created gpu")
        await_line("allocated gpu: gpu-0")
        claim.refresh()
        print("label and finalizer:", claim.labels["handled"], claim.metadata.finalizers[0])
        pod.delete(grace_period=0)
        claim.delete()
        await_line("deleted gpu")
        claim.wait("delete", timeout=30)
        events = api.get("events", namespace="default")
        print(
            "event:",
            [event.raw["reason"] for event in events if event.raw["reason"] == "Allocated"],
        )
        for obj in (device_class, slices):
            obj.delete()
    finally:
        stop.set()
        operator.join()
    print("ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
