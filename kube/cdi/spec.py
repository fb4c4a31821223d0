"""A CDI spec: its fields, and what a container runtime refuses.

The format and its rules: github.com/cncf-tags/container-device-interface, SPEC.md, specs-go
(config.go, version.go) and pkg/cdi (validation of names and edits).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from kube.base import strictyaml
from kube.base.files import read_regular
from kube.base.strictjson import check_bounds

MAX_BYTES: Final = 4 << 20
MAX_VALUES: Final = 100_000  # A hundred for each of a thousand devices.
VERSIONS: Final = (
    *("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"),
)
_VENDOR: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("is not an absolute path")
    return path


def _variable(text: str) -> str:
    if "=" not in text[1:]:
        raise ValueError("is not NAME=value")
    return text


def _kind(text: str) -> str:
    vendor, slash, name = text.partition("/")
    if not (slash and _VENDOR.fullmatch(vendor) and _CLASS.fullmatch(name)):
        raise ValueError("is not vendor/class")
    return text


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Variables = list[Annotated[str, AfterValidator(_variable)]]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=False
    )


class DeviceNode(_Part):
    """A device file."""

    path: AbsolutePath
    host_path: str = ""
    type: Literal["", "b", "c", "u", "p"] = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: Annotated[str, Field(pattern=r"^[rwm]*$")] = ""
    uid: Annotated[int | None, Field(ge=0)] = None
    gid: Annotated[int | None, Field(ge=0)] = None


class Mount(_Part):
    """A mount."""

    host_path: Annotated[str, Field(min_length=1)]
    container_path: Annotated[str, Field(min_length=1)]
    options: list[str] = []
    type: str = ""


class Hook(_Part):
    """A hook of the container's life."""

    hook_name: Literal[
        "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"
    ]
    path: Annotated[str, Field(min_length=1)]
    args: list[str] = []
    env: Variables = []
    timeout: int | None = None


class IntelRdt(_Part):
    """Cache and memory bandwidth."""

    clos_id: Annotated[str, Field(alias="closID")] = ""
    l3_cache_schema: Annotated[str, Field(alias="l3CacheSchema")] = ""
    mem_bw_schema: Annotated[str, Field(alias="memBwSchema")] = ""
    schemata: list[str] = []
    enable_monitoring: bool = False


class NetDevice(_Part):
    """A network device that is moved into the container."""

    host_interface_name: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]


class Edits(_Part):
    """What is changed in a container."""

    env: Variables = []
    device_nodes: list[DeviceNode] = []
    net_devices: list[NetDevice] = []
    hooks: list[Hook] = []
    mounts: list[Mount] = []
    intel_rdt: IntelRdt | None = None
    additional_gids: list[Annotated[int, Field(ge=0)]] = []


class CdiDevice(_Part):
    """A device of a spec."""

    name: Annotated[str, Field(pattern=_NAME.pattern.join(("^", "$")))]
    annotations: dict[str, str] = {}
    container_edits: Edits


class Spec(_Part):
    """A spec file."""

    cdi_version: Literal[VERSIONS]  # type: ignore[valid-type]
    kind: Annotated[str, AfterValidator(_kind)]
    annotations: dict[str, str] = {}
    devices: Annotated[list[CdiDevice], Field(min_length=1)]
    container_edits: Edits = Edits()


def parse(file: Path) -> Spec:
    """Return one file. Raises OSError: it cannot be read; ValueError: it is not a valid spec."""
    data = read_regular(file, MAX_BYTES)
    try:
        content = decode_spec(data, is_json=file.suffix == ".json")
    except yaml.YAMLError as error:
        raise ValueError(f"cannot be decoded: {error}") from None
    spec = Spec.model_validate(content)
    names = [device.name for device in spec.devices]
    if len(set(names)) < len(names):
        raise ValueError("two of its devices have the same name")
    for device in spec.devices:
        if device.container_edits == Edits():
            raise ValueError(f"device {device.name}: containerEdits are empty")
    needed = min_version(spec)
    if VERSIONS.index(needed) > VERSIONS.index(spec.cdi_version):
        raise ValueError(f"cdiVersion is {spec.cdi_version}; what it uses needs {needed}")
    return spec


def decode_spec(data: bytes, *, is_json: bool) -> Any:
    """Return what a spec file says, within bounds. Raises ValueError or YAMLError."""
    if is_json:
        check_bounds(data, MAX_VALUES)
        return json.loads(data.decode())
    return strictyaml.load(data.decode())


def min_version(spec: Spec) -> str:
    """Return the first version that has all of what a spec uses (specs-go/version.go)."""
    edits = [spec.container_edits, *(item.container_edits for item in spec.devices)]
    rdt = [item.intel_rdt for item in edits if item.intel_rdt is not None]
    if any(item.net_devices for item in edits) or any(
        r.schemata or r.enable_monitoring for r in rdt
    ):
        return "1.1.0"
    if rdt or any(item.additional_gids for item in edits):
        return "0.7.0"
    dotted = "." in spec.kind.partition("/")[2]
    if dotted or spec.annotations or any(item.annotations for item in spec.devices):
        return "0.6.0"
    hosts = any(node.host_path for item in edits for node in item.device_nodes)
    if hosts or any(item.name[0].isdigit() for item in spec.devices):
        return "0.5.0"
    return "0.4.0" if any(mount.type for item in edits for mount in item.mounts) else "0.3.0"


def is_id(text: str) -> bool:
    """Return whether it is a qualified device name, vendor/class=name."""
    kind, equals, name = text.partition("=")
    vendor, slash, of_class = kind.partition("/")
    return bool(
        equals
        and slash
        and _VENDOR.fullmatch(vendor)
        and _CLASS.fullmatch(of_class)
        and _NAME.fullmatch(name)
    )
