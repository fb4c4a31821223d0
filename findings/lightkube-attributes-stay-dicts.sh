#!/usr/bin/env bash
# Question: a ResourceSlice is read with lightkube. Is an attribute of a device an object, as the device is?
# Expected: yes. The models have a class DeviceAttribute (and DeviceCapacity, Counter), and items of lists become objects.
# Versions: lightkube 1.0.1, lightkube-models 1.37.0.8.
# Happens: the field is a plain dict, and its values stay what they were, so that `attributes["cores"].int` raises
#   AttributeError where `devices[0].name` works: the class is used by no other one; and `typing.get_type_hints` of DeviceAttribute gives its own fields
#   `int` and `bool` as types, since the fields are named as the types are.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lightkube==1.0.1 lightkube-models==1.37.0.8
"$folder/venv/bin/python" - <<'PYTHON'
import typing

from lightkube import codecs
from lightkube.models.resource_v1 import Device, DeviceAttribute

resource_slice = codecs.from_dict({
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-1-gpu"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{
            "name": "gpu-0",
            "attributes": {"cores": {"int": 4}},
            "capacity": {"memory": {"value": "40Gi"}},
        }],
    },
})
device = resource_slice.spec.devices[0]
assert isinstance(device, Device), "the item of the list is an object"
for field in (device.attributes["cores"], device.capacity["memory"]):
    assert type(field) is dict, f"an object now: {field!r}"
try:
    device.attributes["cores"].int
except AttributeError as error:
    print("attributes stay dicts:", error)
else:
    raise SystemExit("attributes are objects now")
hint = typing.get_args(typing.get_type_hints(DeviceAttribute)["int"])[0]
assert hint is not int, "the type of the field int is int now"
print("the type of DeviceAttribute.int is said to be", hint)
PYTHON
