"""What the models of all documents have in common: strictness, durations, selectors of objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from typing_extensions import TypeAliasType

from kube.values import POD_CLAIM_ANNOTATION, Obj

API_VERSION: Final = "dra-conformance/v1"


_DURATION: Final = r"^([0-9]+(?:[.][0-9]+)?)(ms|s|m)$"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_LONGEST: Final = 3600.0


def parse_duration(value: Any) -> float:
    """Seconds from ``500ms``, ``3s`` or ``2m`` (a part of Go's format). Raises ValueError."""
    match = re.match(_DURATION, value) if isinstance(value, str) else None
    if match is None:
        unit = (
            "; write the number with its unit, ms, s or m" if isinstance(value, int | float) else ""
        )
        raise ValueError(f"must be a duration like 500ms, 3s or 2m{unit}")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise ValueError("must be a duration of at most an hour (60m)")
    return seconds


Duration = Annotated[
    float,
    BeforeValidator(
        parse_duration, json_schema_input_type=Annotated[str, Field(pattern=_DURATION)]
    ),
]
"""Seconds; in the document a text like ``500ms``."""


def _version_range(value: str) -> str:
    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        raise ValueError(f"is not a version range like >=1.34: {value!r}") from None
    return value


VersionRange = Annotated[str, AfterValidator(_version_range)]
"""Versions of Kubernetes, as packaging's SpecifierSet has them."""

Manifest = TypeAliasType(
    "Manifest",
    Annotated[dict[str, Any], Field(description="a Kubernetes object, as one would apply it")],
)
"""In full, once a scenario was read (``conformance.scenario.short``)."""


class Strict(BaseModel):
    """A part of a document: unknown fields are errors, and what was read does not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel
    )


class Named(Strict):
    """The name by which an option finds a document that the suite ships."""

    name: str


def dns_name(value: str) -> str:
    """A name as the API server takes it. Raises ValueError: it does not."""
    from reference_allocator.api.names import dns_subdomain_problems

    problems = dns_subdomain_problems(value)
    if problems:
        raise ValueError("; ".join(problems))
    return value


DnsName = Annotated[str, AfterValidator(dns_name)]


def api_objects(value: tuple[Obj, ...], kind: str, what: str) -> tuple[Obj, ...]:
    """Values of an API type like ``resource/v1.Device``. Raises ValueError: wrong field or type."""
    from reference_allocator.api import schema

    for mistake in schema.find_mistakes(f"[]{kind}", list(value)):
        place = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in mistake.path)
        if isinstance(mistake, schema.UnknownField):
            raise ValueError(f"{place}: {what} has no such field")
        raise ValueError(f"{place}: {mistake.value!r} is not of the type that the API has")
    return value


class ServerSelector(Strict):
    """Names objects of one kind in words that the API server knows, as lists and watches do."""

    api_version: str | None = Field(
        default=None, description="the version to read; default: the stable one"
    )
    kind: str
    namespace: str | None = Field(
        default=None, description="that of the object; default: that of the scenario"
    )
    labels: dict[str, str] | None = None
    fields: dict[str, str] | None = Field(
        default=None,
        description="a field selector, which the API server evaluates, like spec.nodeName",
    )

    def describe(self) -> str:
        """In words, for example ``ResourceClaim gpu of pod0``."""
        parts = [self.kind, *self._which()]
        if self.labels:
            parts.append("with " + ",".join(f"{key}={value}" for key, value in self.labels.items()))
        if self.fields:
            parts.append(
                "where " + ",".join(f"{key}={value}" for key, value in self.fields.items())
            )
        if self.namespace:
            parts.append(f"of namespace {self.namespace}")
        if self.api_version:
            parts.append(f"in {self.api_version}")
        return " ".join(parts)

    def _which(self) -> Iterator[str]:
        yield from ()


class ObjectSelector(ServerSelector):
    """Names objects of one kind: by name, or by how they relate to others."""

    name: str | None = None
    owned_by: str | None = Field(default=None, description="name of the controlling owner")
    pod_claim: str | None = Field(
        default=None,
        description="name in pod.spec.resourceClaims for which a ResourceClaim was generated",
    )

    @model_validator(mode="after")
    def _listed(self) -> ObjectSelector:
        if self.fields is not None and self.name is not None:
            raise ValueError("fields are for lists: write metadata.name instead of name")
        return self

    def _which(self) -> Iterator[str]:
        if self.name:
            yield self.name
        if self.pod_claim:
            yield f"for {self.pod_claim}"
        if self.owned_by:
            yield f"of {self.owned_by}"

    def selects(self, obj: Obj) -> bool:
        """Whether an object of the kind, and of the name if one is given, is meant."""
        meta = obj["metadata"]
        if self.owned_by is not None and not any(
            owner.get("controller") and owner["name"] == self.owned_by
            for owner in meta.get("ownerReferences", ())
        ):
            return False
        annotations = meta.get("annotations", {})
        if self.pod_claim is not None and self.pod_claim != annotations.get(POD_CLAIM_ANNOTATION):
            return False
        wanted = self.labels or {}
        return all(meta.get("labels", {}).get(key) == value for key, value in wanted.items())


class PodSelector(Strict):
    """Several pods: those of a Job, or those with given labels."""

    job: str | None = None
    labels: dict[str, str] | None = None

    @model_validator(mode="after")
    def _one(self) -> PodSelector:
        if (self.job is None) == (self.labels is None):
            raise ValueError("give job or labels")
        return self


def release(text: str) -> Version | None:
    """A Kubernetes version without pre-release and vendor parts (``1.37.1-gke.5`` is 1.37.1)."""
    try:
        return Version(Version(text.lstrip("v").split("-")[0].split("+")[0]).base_version)
    except InvalidVersion:
        return None
