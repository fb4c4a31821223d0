"""``dra-conformance new``: write a driver profile or a scenario to start from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.cli.app import SETTINGS
from conformance.cli.output import write_named
from conformance.scenario.base import dns_name
from conformance.scenario.documents.yamlfile import (
    as_mapping,
    as_text,
    list_mappings,
    read_documents,
)
from kube.base.errors import UsageError

app = typer.Typer(
    name="new",
    help="Write a driver profile or scenario to start from.",
    no_args_is_help=True,
    **SETTINGS,
)

MOST_DEVICES = 8
"""The most devices of a node that a new profile describes."""

_Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="File to write. [default: NAME.yaml]"),
]


@app.command("profile", short_help="Write a driver profile to start from.")
def new_profile(
    driver: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the driver in ResourceSlices.")
    ],
    slices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Copy the devices of these ResourceSlices of the driver, the output of "
            "`kubectl get resourceslices -o yaml`.",
        ),
    ] = None,
    output: _Output = None,
) -> None:
    """Write a driver profile to start from; comments in it mark what is guessed."""
    file = output or Path(f"{driver}.yaml")
    if slices is None:
        _write_profile(file, driver, [{"name": f"device-{number}"} for number in range(4)])
    else:
        write_profile(file, driver, _read(slices, driver), str(slices))


def write_profile(
    file: Path, driver: str, slices: Sequence[Mapping[str, Any]], source: str
) -> None:
    """Write a profile with what a driver's ResourceSlices (v1) show.

    ``source`` says in messages where they are from. Raises UsageError: there is no device, one has
    no name, the driver's name is none, or the file is there already or cannot be written.
    """
    specs = [spec for one in slices if (spec := as_mapping(one.get("spec"))).get("devices")]
    devices = [
        _described(device)
        for spec in specs
        for _, device in list_mappings(spec["devices"])
        if spec.get("nodeName") == specs[0].get("nodeName")  # as one node has them
    ]
    if not devices:
        raise UsageError(f"{source}: no device in a ResourceSlice of {driver}")
    if not all(isinstance(device.get("name"), str) for device in devices):
        raise UsageError(f"{source}: a device without a name")
    traits = ["nodeLocal"] if all(spec.get("nodeName") for spec in specs) else []
    _write_profile(file, driver, devices[:MOST_DEVICES], traits)


def _write_profile(
    file: Path, driver: str, devices: Sequence[Mapping[str, Any]], traits: Sequence[str] = ()
) -> None:
    name = _checked(driver)
    example = devices[0]
    match, no_match = _selectors(name, as_mapping(example.get("attributes")))
    variable = re.sub(r"\W", "_", name.upper()) + "_DEVICE"
    _write(
        file,
        "profile",
        driver=name,
        variable=variable,
        ways=_ways(as_mapping(example.get("attributes")), variable),
        device_name=re.sub(r"\d+$", "{index}", as_text(example["name"])),
        attributes=_own(example, "attributes"),
        capacity=_own(example, "capacity"),
        match=match,
        no_match=no_match,
        traits=list(traits),
        devices=devices,
    )


@app.command("scenario", short_help="Write a scenario to start from.")
def new_scenario(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the scenario, part of its id.")
    ],
    output: _Output = None,
) -> None:
    """Write a scenario to start from: a pod claims a device and releases it."""
    _write(output or Path(f"{_checked(name)}.yaml"), "scenario", name=_checked(name))


def _checked(name: str) -> str:
    try:
        return dns_name(name)
    except ValueError as error:
        raise UsageError(f"the name {name!r:.80} is not valid: {error}") from None


def _write(file: Path, template: str, **values: object) -> None:
    """Write a new file. Raises UsageError: it is there already, or cannot be written."""
    environment = Environment(
        loader=PackageLoader("conformance.cli.scenarios"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 -- it is YAML; every value goes through the filter below
        keep_trailing_newline=True,
    )
    environment.filters["yaml"] = _yaml
    content = environment.get_template(f"{template}.yaml.j2").render(values)
    if file.exists():
        raise UsageError(f"{file} already exists; name another file with --output, or remove it")
    write_named(file, content.encode())
    typer.echo(f"wrote {file}; check it with `dra-conformance lint {file}`")


def _yaml(value: object) -> str:
    """A value in one line of YAML."""
    dumped = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return dumped.removesuffix("...\n").strip()


def _read(file: Path, driver: str) -> list[Mapping[str, Any]]:
    """The ResourceSlices of a driver in a file. Raises UsageError: it cannot be read."""
    found = []
    for document in read_documents(file):
        top = as_mapping(document.data)
        for one in [item for _, item in list_mappings(top.get("items"))] or [top]:
            spec = as_mapping(one.get("spec"))
            if one.get("kind") != "ResourceSlice" or spec.get("driver") != driver:
                continue
            if one.get("apiVersion") == "resource.k8s.io/v1beta1":
                raise UsageError(
                    f"{file}: a ResourceSlice of v1beta1; ask for"
                    " `kubectl get resourceslices.v1.resource.k8s.io -o yaml`"
                )
            found.append(one)
    return found


def _described(device: Mapping[str, Any]) -> dict[str, Any]:
    """A device without what means something only beside the others of its pool."""
    own = ("name", "allowMultipleAllocations", "attributes", "capacity")
    return {key: device[key] for key in own if key in device}


def _ways(attributes: Mapping[str, Any], variable: str) -> dict[str, dict[str, Any]]:
    """How containers may show devices that have attributes with names like these."""
    # Each pod has lo, and most have eth0.
    interface = {"kind": "interfaces", "line": r"(?!lo |eth0 )(?P<device>\S+) mac "}
    mac = {"kind": "interfaces", "line": r"(?!lo |eth0 )\S+ mac (?P<device>\S+)"}
    cpus = {"kind": "env", "line": rf"^{variable}\w*=(?P<device>.*)$", "set": True}
    known: dict[str, dict[str, Any]] = {
        "ifname": interface,
        "interfacename": interface,
        "mac": mac,
        "macaddress": mac,
        "cpuid": cpus,
    }
    found: dict[str, dict[str, Any]] = {}
    for name in attributes:
        plain = re.sub(r"\W", "", name.rpartition("/")[2])
        if plain.lower() in known:
            found[plain[0].lower() + plain[1:]] = {**known[plain.lower()], "attribute": name}
    return found


def _own(device: Mapping[str, Any], field: str) -> dict[str, str]:
    """Short name -> name, of the driver's own attributes or capacity."""
    return {name: name for name in as_mapping(device.get(field)) if "/" not in name}


def _selectors(driver: str, attributes: Mapping[str, Any]) -> Sequence[str]:
    """CEL that is true for a device with these attributes, and CEL that is true for none."""
    for name, value in attributes.items():
        if "/" not in name and isinstance(found := as_mapping(value).get("version"), str):
            of = f'device.attributes["{driver}"].{name}'
            return (
                f'{of}.compareTo(semver("{found}")) >= 0',
                f'{of}.isGreaterThan(semver("9999.0.0"))',
            )
    for name, value in attributes.items():
        if "/" not in name and isinstance(found := as_mapping(value).get("string"), str):
            of = f'device.attributes["{driver}"].{name}'
            return f"{of} == {_quoted(found)}", f"{of} == {_quoted('no-' + found)}"
    return f'device.driver == "{driver}"', f'device.driver == "no-{driver}"'


def _quoted(value: str) -> str:
    """A text as a CEL literal."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
