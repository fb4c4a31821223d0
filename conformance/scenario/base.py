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
_LONGEST_SECONDS: Final = 3600.0


def parse_duration(value: Any) -> float:
    """Return the seconds of ``500ms``, ``3s`` or ``2m`` (of Go's format). Raises ValueError."""
    match = re.match(_DURATION, value) if isinstance(value, str) else None
    if match is None:
        unit = (
            "; write the number with its unit, ms, s or m" if isinstance(value, int | float) else ""
        )
        raise ValueError(f"must be a duration like 500ms, 3s or 2m{unit}")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST_SECONDS:
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
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=to_camel,
        # Most are only parts of a Scenario, which has validators for all that is in it.
        defer_build=True,
    )


class Named(Strict):
    """The name by which an option finds a document that the suite ships."""

    name: str


def dns_name(value: str) -> str:
    """Return a name that the API server takes. Raises ValueError if it does not take it."""
    from reference_allocator.api.names import dns_subdomain_problems

    problems = dns_subdomain_problems(value)
    if problems:
        raise ValueError("; ".join(problems))
    return value


DnsName = Annotated[str, AfterValidator(dns_name)]


def api_objects(value: tuple[Obj, ...], kind: str, what: str) -> tuple[Obj, ...]:
    """Return values of an API type like ``resource/v1.Device``. Raises ValueError for others."""
    from reference_allocator.api import schema

    for mistake in schema.find_mistakes(f"[]{kind}", list(value)):
        path_text = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in mistake.path)
        if isinstance(mistake, schema.UnknownField):
            raise ValueError(f"{path_text}: {what} has no such field")
        raise ValueError(f"{path_text}: {mistake.value!r} is not of the type that the API has")
    return value


class ServerSelector(Strict):
    """Names objects of one kind in words that the API server knows, as lists and watches do."""

    model_config = ConfigDict(defer_build=False)  # Steps make it, in threads.

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
        """Return what is selected in words, for example ``ResourceClaim gpu of pod0``."""
        phrases = [self.kind, *self._identify()]
        if self.labels:
            phrases.append(
                "with " + ",".join(f"{key}={value}" for key, value in self.labels.items())
            )
        if self.fields:
            phrases.append(
                "where " + ",".join(f"{key}={value}" for key, value in self.fields.items())
            )
        if self.namespace:
            phrases.append(f"of namespace {self.namespace}")
        if self.api_version:
            phrases.append(f"in {self.api_version}")
        return " ".join(phrases)

    def _identify(self) -> Iterator[str]:
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
    def _check_fields_and_name(self) -> ObjectSelector:
        if self.fields is not None and self.name is not None:
            raise ValueError("fields are for lists: write metadata.name instead of name")
        return self

    def _identify(self) -> Iterator[str]:
        if self.name:
            yield self.name
        if self.pod_claim:
            yield f"for {self.pod_claim}"
        if self.owned_by:
            yield f"of {self.owned_by}"

    def selects(self, obj: Obj) -> bool:
        """Return whether the selector means an object of its kind, and of its name if given."""
        meta = obj["metadata"]
        if self.owned_by is not None and not any(
            owner.get("controller") and owner["name"] == self.owned_by
            for owner in meta.get("ownerReferences", ())
        ):
            return False
        annotations = meta.get("annotations", {})
        if self.pod_claim is not None and self.pod_claim != annotations.get(POD_CLAIM_ANNOTATION):
            return False
        labels = self.labels or {}
        return all(meta.get("labels", {}).get(key) == value for key, value in labels.items())


class PodSelector(Strict):
    """Several pods: those of a Job, or those with given labels."""

    job: str | None = None
    labels: dict[str, str] | None = None

    @model_validator(mode="after")
    def _check_one_of(self) -> PodSelector:
        if (self.job is None) == (self.labels is None):
            raise ValueError("give job or labels")
        return self


def parse_release(text: str) -> Version | None:
    """Return a Kubernetes version without pre-release and vendor (``1.37.1-gke.5`` is 1.37.1)."""
    try:
        return Version(Version(text.lstrip("v").split("-")[0].split("+")[0]).base_version)
    except InvalidVersion:
        return None
