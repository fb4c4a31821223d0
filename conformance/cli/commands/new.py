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

new_command = typer.Typer(
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


@new_command.command("profile", short_help="Write a driver profile to start from.")
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
        _fill_profile(file, driver, [{"name": f"device-{number}"} for number in range(4)])
    else:
        write_profile(file, driver, _read_slices(slices, driver), str(slices))


def write_profile(
    file: Path, driver: str, slices: Sequence[Mapping[str, Any]], source: str
) -> None:
    """Write a profile with what a driver's ResourceSlices (v1) show.

    ``source`` says in messages where they are from. Raises UsageError: there is no device, one has
    no name, the driver's name is none, or the file is there already or cannot be written.
    """
    specs = [spec for item in slices if (spec := as_mapping(item.get("spec"))).get("devices")]
    devices = [
        _describe_device(device)
        for spec in specs
        for _, device in list_mappings(spec["devices"])
        if spec.get("nodeName") == specs[0].get("nodeName")  # as one node has them
    ]
    if not devices:
        raise UsageError(f"{source}: no device in a ResourceSlice of {driver}")
    if not all(isinstance(device.get("name"), str) for device in devices):
        raise UsageError(f"{source}: a device without a name")
    traits = ["nodeLocal"] if all(spec.get("nodeName") for spec in specs) else []
    _fill_profile(file, driver, devices[:MOST_DEVICES], traits)


def _fill_profile(
    file: Path, driver: str, devices: Sequence[Mapping[str, Any]], traits: Sequence[str] = ()
) -> None:
    name = _check_name(driver)
    example = devices[0]
    match, no_match = _make_selectors(name, as_mapping(example.get("attributes")))
    variable = re.sub(r"\W", "_", name.upper()) + "_DEVICE"
    _write_new(
        file,
        "profile",
        driver=name,
        variable=variable,
        ways=_guess_ways(as_mapping(example.get("attributes")), variable),
        device_name=re.sub(r"\d+$", "{index}", as_text(example["name"])),
        attributes=_list_own(example, "attributes"),
        capacity=_list_own(example, "capacity"),
        match=match,
        no_match=no_match,
        traits=list(traits),
        devices=devices,
    )


@new_command.command("scenario", short_help="Write a scenario to start from.")
def new_scenario(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the scenario, part of its id.")
    ],
    output: _Output = None,
) -> None:
    """Write a scenario to start from: a pod claims a device and releases it."""
    _write_new(output or Path(f"{_check_name(name)}.yaml"), "scenario", name=_check_name(name))


def _check_name(name: str) -> str:
    """Return the name of a driver or a scenario. Raises UsageError: it is none."""
    try:
        return dns_name(name)
    except ValueError as error:
        raise UsageError(f"the name {name!r:.80} is not valid: {error}") from None


def _write_new(file: Path, template: str, **values: object) -> None:
    """Write a new file. Raises UsageError: it is there already, or cannot be written."""
    environment = Environment(
        loader=PackageLoader("conformance.cli"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 -- it is YAML; every value goes through the filter below
        keep_trailing_newline=True,
    )
    environment.filters["yaml"] = _to_yaml
    content = environment.get_template(f"{template}.yaml.j2").render(values)
    if file.exists():
        raise UsageError(f"{file} already exists; name another file with --output, or remove it")
    write_named(file, content.encode())
    typer.echo(f"wrote {file}; check it with `dra-conformance lint {file}`")


def _to_yaml(value: object) -> str:
    """Write a value in one line of YAML."""
    dumped = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return dumped.removesuffix("...\n").strip()


def _read_slices(file: Path, driver: str) -> list[Mapping[str, Any]]:
    """Read the ResourceSlices of a driver in a file. Raises UsageError: it cannot be read."""
    slices = []
    for document in read_documents(file):
        top = as_mapping(document.data)
        for item in [item for _, item in list_mappings(top.get("items"))] or [top]:
            spec = as_mapping(item.get("spec"))
            if item.get("kind") != "ResourceSlice" or spec.get("driver") != driver:
                continue
            if item.get("apiVersion") == "resource.k8s.io/v1beta1":
                raise UsageError(
                    f"{file}: a ResourceSlice of v1beta1; ask for"
                    " `kubectl get resourceslices.v1.resource.k8s.io -o yaml`"
                )
            slices.append(item)
    return slices


def _describe_device(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return a device without what means something only beside the others of its pool."""
    fields = ("name", "allowMultipleAllocations", "attributes", "capacity")
    return {field: device[field] for field in fields if field in device}


def _guess_ways(attributes: Mapping[str, Any], variable: str) -> dict[str, dict[str, Any]]:
    """Guess how containers show devices, by the names of their attributes."""
    # Each pod has lo, and most have eth0.
    interface = {"kind": "interfaces", "line": r"(?!lo |eth0 )(?P<device>\S+) mac "}
    mac = {"kind": "interfaces", "line": r"(?!lo |eth0 )\S+ mac (?P<device>\S+)"}
    cpus = {"kind": "env", "line": rf"^{variable}\w*=(?P<device>.*)$", "set": True}
    ways_by_name: dict[str, dict[str, Any]] = {
        "ifname": interface,
        "interfacename": interface,
        "mac": mac,
        "macaddress": mac,
        "cpuid": cpus,
    }
    ways: dict[str, dict[str, Any]] = {}
    for name in attributes:
        plain = re.sub(r"\W", "", name.rpartition("/")[2])
        if plain.lower() in ways_by_name:
            way = {**ways_by_name[plain.lower()], "attribute": name}
            ways[plain[0].lower() + plain[1:]] = way
    return ways


def _list_own(device: Mapping[str, Any], field: str) -> dict[str, str]:
    """Map short names to names, for the driver's own attributes or capacity."""
    return {name: name for name in as_mapping(device.get(field)) if "/" not in name}


def _make_selectors(driver: str, attributes: Mapping[str, Any]) -> Sequence[str]:
    """Make CEL that is true for a device with these attributes, and CEL that is true for none."""
    for name, value in attributes.items():
        if "/" not in name and isinstance(version := as_mapping(value).get("version"), str):
            attribute = f'device.attributes["{driver}"].{name}'
            return (
                f'{attribute}.compareTo(semver("{version}")) >= 0',
                f'{attribute}.isGreaterThan(semver("9999.0.0"))',
            )
    for name, value in attributes.items():
        if "/" not in name and isinstance(string := as_mapping(value).get("string"), str):
            attribute = f'device.attributes["{driver}"].{name}'
            return f"{attribute} == {_quote(string)}", f"{attribute} == {_quote('no-' + string)}"
    return f'device.driver == "{driver}"', f'device.driver == "no-{driver}"'


def _quote(value: str) -> str:
    """Write a text as a CEL literal."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
