"""Writes a small ``nvidia-smi`` for containers with simulated GPUs, which says that it is one.

It answers in the formats of the real one and, like it, shows only the devices whose files are in
the container. It knows two questions and refuses any other. Nobody should take what it says for
hardware, so its output begins with :data:`MARK`.

It is a shell script, as containers have no Python. :func:`render_output` says what it would print,
for the reference, which runs no processes.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator

from kube.simulated import MARK
from nvml_driver.model.inventory import Device, Inventory, MigInstance

CONTAINER_PATH = "/usr/bin/nvidia-smi"  # Where NVIDIA's container toolkit puts the real one.


LIST = "-L"
QUERY = "--query-gpu=uuid,name,memory.total,compute_mode --format=csv,noheader"

_HEAD = (
    """\
#!/bin/sh
# Written by nvml-dra-driver, for containers with simulated GPUs.
echo '@MARK@'
case "$*" in
'@LIST@') asked=list ;;
'@QUERY@') asked=query ;;
*)
  echo 'it knows only @LIST@ and @QUERY@' >&2
  exit 2
  ;;
esac
n=0
gpu() { # FILE LISTED QUERIED
  if [ -c "/dev/$1" ]; then
    case $asked in
    list) echo "GPU $n: $2" ;;
    query) echo "$3" ;;
    esac
    n=$((n + 1))
  fi
}
mig() { # FILE LISTED
  if [ $asked = list ] && [ -c "/dev/$1" ]; then echo "  $2"; fi
}
""".replace("@MARK@", MARK)
    .replace("@LIST@", LIST)
    .replace("@QUERY@", QUERY)
)


def render_script(inventory: Inventory, created: Iterable[tuple[Device, MigInstance]] = ()) -> str:
    """Return a node's script; ``created``: MIG devices made for claims, each with its device."""
    devices = [device for device in inventory if device.minor is not None]
    instances = [(item, item.instance) for item in devices if item.instance is not None]
    lines = []
    for minor in dict.fromkeys(device.minor for device in devices):
        of_gpu = [device for device in devices if device.minor == minor]
        lines.append(_gpu_line(next((full for full in of_gpu if full.parent is None), of_gpu[0])))
        mig_devices = [pair for pair in (*instances, *created) if pair[0].minor == minor]
        lines += [_mig_line(number, instance) for number, (_, instance) in enumerate(mig_devices)]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def render_output(text: str, options: str, files: Collection[str]) -> str:
    """Return what a script prints for its options (one text) given the container's device files."""
    if options not in (LIST, QUERY):
        return f"{MARK}\nit knows only {LIST} and {QUERY}\n"
    return "".join(f"{line}\n" for line in (MARK, *_render_lines(text, options, files)))


def _render_lines(text: str, options: str, files: Collection[str]) -> Iterator[str]:
    number = 0
    for line in text.removeprefix(_HEAD).splitlines():
        entry_kind, file, *words = shlex.split(line)
        if f"/dev/{file}" not in files:
            continue
        if entry_kind == "gpu":
            listed, queried = words
            yield f"GPU {number}: {listed}" if options == LIST else queried
            number += 1
        elif options == LIST:
            yield f"  {words[0]}"


def _gpu_line(device: Device) -> str:
    uuid = _attribute_text(device, "parentUUID" if device.parent else "uuid")
    name = _attribute_text(device, "productName")
    # The memory of a part is not that of the GPU.
    memory = None if device.parent else device.capacity.get("memory")
    total = "[N/A]" if memory is None else f"{memory // 2**20} MiB"
    queried = f"{uuid}, {name}, {total}, Default"
    return shlex.join(["gpu", f"nvidia{device.minor}", f"{name} (UUID: {uuid})", queried])


def _mig_line(number: int, created: MigInstance) -> str:
    file = f"nvidia-caps/nvidia-cap{created.gi_capability}"
    listed = f"MIG {created.place.profile:<12} Device {number:>2}: (UUID: {created.uuid})"
    return shlex.join(["mig", file, listed])


def _attribute_text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return "[N/A]" if attribute is None else str(attribute.value)
