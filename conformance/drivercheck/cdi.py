"""CDI specs as a container runtime reads them: which devices there are, and what is wrong.

The format and its rules: github.com/cncf-tags/container-device-interface, SPEC.md, specs-go
(config.go, version.go) and pkg/cdi (validation of names and edits).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from conformance.files import read_regular
from conformance.text import one_line

MAX_BYTES: Final = 4 << 20
MAX_FILES: Final = 4096
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
        extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=False
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


def device_ids(folders: Iterable[Path]) -> dict[str, CdiDevice]:
    """CDI id -> device, of all valid spec files; files that are not valid are left out."""
    found, _ = read(folders)
    return found


def read(folders: Iterable[Path]) -> tuple[dict[str, CdiDevice], list[str]]:
    """CDI id -> device of each valid spec, and a message for each file that is not valid.

    Also for each device that two files define: a runtime then takes neither.
    """
    found: dict[str, CdiDevice] = {}
    wrong: list[str] = []
    for file in _files(folders):
        try:
            spec = parse(file)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            wrong.append(f"{file.name}: {_why(error)}")
            continue
        for device in spec.devices:
            name = f"{spec.kind}={device.name}"
            if name in found:
                wrong.append(f"{file.name}: another file defines {name}, too")
            found[name] = device
    return found, wrong


def node_paths(folders: Iterable[Path], ids: Iterable[str]) -> set[str]:
    """What the specs that define such ids need of a node: sources of mounts, and device files.

    Not those device files whose type and numbers they say, which a runtime need not look at
    (pkg/cdi/container-edits_unix.go, fillInfo).
    """
    found: set[str] = set()
    wanted = set(ids)
    for file in _files(folders):
        with suppress(OSError, ValueError):
            spec = parse(file)
            if wanted.isdisjoint(f"{spec.kind}={device.name}" for device in spec.devices):
                continue
            for edits in (spec.container_edits, *(one.container_edits for one in spec.devices)):
                found.update(one.host_path for one in edits.mounts)
                found.update(
                    node.host_path or node.path
                    for node in edits.device_nodes
                    if not (node.type and (node.major or node.type == "p"))
                )
    return {path for path in found if path.startswith("/")}  # a tmpfs has none


def _files(folders: Iterable[Path]) -> list[Path]:
    found = [
        file
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
        if file.suffix in (".json", ".yaml") and not file.name.startswith(".")
    ]
    return sorted(found)[:MAX_FILES]


def parse(file: Path) -> Spec:
    """One file. Raises OSError: it cannot be read; ValueError: it is not a valid spec."""
    text = read_regular(file, MAX_BYTES).decode()
    try:
        content: Any = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (RecursionError, yaml.YAMLError) as error:
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


def min_version(spec: Spec) -> str:
    """The first version that has all of what a spec uses (specs-go/version.go)."""
    edits = [spec.container_edits, *(one.container_edits for one in spec.devices)]
    rdt = [one.intel_rdt for one in edits if one.intel_rdt is not None]
    if any(one.net_devices for one in edits) or any(r.schemata or r.enable_monitoring for r in rdt):
        return "1.1.0"
    if rdt or any(one.additional_gids for one in edits):
        return "0.7.0"
    dotted = "." in spec.kind.partition("/")[2]
    if dotted or spec.annotations or any(one.annotations for one in spec.devices):
        return "0.6.0"
    hosts = any(node.host_path for one in edits for node in one.device_nodes)
    if hosts or any(one.name[0].isdigit() for one in spec.devices):
        return "0.5.0"
    return "0.4.0" if any(mount.type for one in edits for mount in one.mounts) else "0.3.0"


def is_id(text: str) -> bool:
    """Whether it is a qualified device name, vendor/class=name."""
    kind, equals, name = text.partition("=")
    vendor, slash, of_class = kind.partition("/")
    return bool(
        equals
        and slash
        and _VENDOR.fullmatch(vendor)
        and _CLASS.fullmatch(of_class)
        and _NAME.fullmatch(name)
    )


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {one_line(first['msg'], 150)}"
    return one_line(error, 200)
