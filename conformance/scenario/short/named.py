"""The named manifests, ``scenarios/manifests.yaml``: what is common to objects, said once."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import Field

from conformance.data import scenarios_dir
from conformance.scenario.base import Strict
from conformance.scenario.documents.validate import load_document

Tier = Literal["allocation", "node", "device"]


class NamedManifest(Strict):
    """One kind of object that scenarios may write in short."""

    summary: str = Field(description="what one gets that says nothing but its name")
    fields: str = Field(description="where the fields beside the name go, for example spec.devices")
    manifest: dict[str, Any] = Field(description="the object, without its name")


class ManifestSet(Strict):
    """What scenarios need not write."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["ManifestSet"]
    manifests: dict[str, NamedManifest]
    pods: dict[Tier, dict[str, Any]] = Field(description="what a pod has that does not say else")
    containers: dict[str, Any] = Field(description="what a container has that does not say else")
    device_class: str = Field(alias="deviceClass", description="of a request that names none")


@cache
def load_manifests() -> ManifestSet:
    return load_document(ManifestSet, scenarios_dir() / "manifests.yaml", "set of manifests")
