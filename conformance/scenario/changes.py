"""What a scenario asks the API server to change, beside creating, and in whose name.

Each verb has the same form as a step and in ``rejected``, so that a reader of the step knows what
is refused. What a request may do beside its verb (dry run) stands next to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import Manifest, ObjectSelector, Strict
from conformance.scenario.documents.yamlfile import as_mapping, as_text
from conformance.scenario.lint_context import LintContext, Path

KUBELET: Final = "kubelet"

AccountName = Literal["kubelet", "driver", "other-driver", "user"]
"""Fixed, so that the user who runs the suite needs to impersonate these accounts only.

All are service accounts of the scenario's namespace but ``kubelet``: the account of a node's own.
"""


def service_account(name: str) -> str:
    """Return the name in the cluster of an account that scenarios call ``name``."""
    return f"dra-conformance-{name}"


class PolicyRule(Strict):
    """A PolicyRule (``rbac.authorization.k8s.io/v1``) of a Role in the scenario's namespace."""

    api_groups: tuple[str, ...] = Field(min_length=1, description='"" is core')
    resources: tuple[str, ...] = Field(
        min_length=1, description="plural, with a subresource like resourceclaims/status"
    )
    resource_names: tuple[str, ...] = Field(default=(), description="of these objects only")
    verbs: tuple[str, ...] = Field(
        min_length=1, description="like get, patch, associated-node:patch"
    )

    @property
    def body(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Account(Strict):
    """A service account of the scenario's namespace, which may do nothing but what is said here.

    The one called ``kubelet`` is that of the node's kubelet, and has its rights and no others.
    """

    rules: tuple[PolicyRule, ...] = Field(
        default=(), description="what it may do in the scenario's namespace; default: nothing"
    )
    node: str | None = Field(
        default=None,
        description="name of the node on which it acts, like a driver's pod; of `kubelet`: its own",
    )


Subresource = Literal["status"]

CapturedName = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9]*$")]  # A variable of CEL.

UNCHANGED_SINCE: Any = Field(
    default=None,
    alias="unchangedSince",
    description="an earlier capture of the object, whose resourceVersion it must still have",
)


class Preconditions(Strict):
    """What an object must be to be deleted (``metav1.Preconditions``)."""

    uid: str | None = None
    resource_version: str | None = None


class Delete(ObjectSelector):
    """Delete one object, or all that the selector finds."""

    grace_seconds: int | None = Field(
        default=None,
        alias="gracePeriodSeconds",
        ge=0,
        description="seconds that pods have to end; default: what they say themselves",
    )
    propagation: Literal["Background", "Foreground", "Orphan"] = Field(
        default="Background",
        alias="propagationPolicy",
        description="what belongs to it goes afterwards, or before it, or stays",
    )
    preconditions: Preconditions | None = Field(
        default=None, description="refused where the object is another one, or has changed"
    )
    collection: bool = Field(
        default=False,
        description="one request for all objects of the kind (deletecollection) that the scenario"
        " has made in its namespace",
    )

    @model_validator(mode="after")
    def _check_collection(self) -> Delete:
        if self.collection and (self.name or self.owned_by or self.pod_claim):
            raise ValueError("collection: true takes objects by kind and labels alone")
        return self


class Operation(Strict):
    """One operation of a JSON patch (RFC 6902)."""

    op: Literal["add", "copy", "remove", "replace", "test"]
    path: str = Field(pattern=r"^(/[^/]*)+$", description="of a field, like /metadata/labels/a")
    source: str | None = Field(
        default=None,
        alias="from",
        pattern=r"^(/[^/]*)+$",
        description="for copy: the field whose value path gets, for what only the cluster knows",
    )
    value: Any = None

    @model_validator(mode="after")
    def _copies_from_somewhere(self) -> Operation:
        if (self.op == "copy") != (self.source is not None):
            raise ValueError("from goes with op: copy, which needs it")
        return self


class Patch(ObjectSelector):
    """Change one object: a mapping is a merge patch (RFC 7386), a list a JSON patch (RFC 6902)."""

    patch: dict[str, Any] | tuple[Operation, ...]
    subresource: Subresource | None = None
    unchanged_since: CapturedName | None = UNCHANGED_SINCE

    @model_validator(mode="after")
    def _versioned(self) -> Patch:
        if self.unchanged_since is not None and not isinstance(self.patch, dict):
            raise ValueError("unchangedSince goes with a merge patch, which can say a version")
        return self

    def describe_change(self) -> str:
        return f"patch {self.describe()}" + _describe_subresource(self.subresource)

    def lint(self, lint: LintContext, path: Path) -> None:
        lint.expects_selection(path, self)
        if isinstance(self.patch, dict):
            lint.check_fields((*path, "patch"), self.patch, self)
        _lint_version(self, lint, path)

    @property
    def body(self) -> Any:
        if isinstance(self.patch, dict):
            return self.patch
        return [operation.model_dump(exclude_unset=True, by_alias=True) for operation in self.patch]


class Update(Strict):
    """Replace one object by another one of its kind and name, as `kubectl replace` does."""

    object: Manifest
    subresource: Subresource | None = None
    unchanged_since: CapturedName | None = UNCHANGED_SINCE

    @model_validator(mode="after")
    def _one_version(self) -> Update:
        meta = self.object.get("metadata")
        has_version = isinstance(meta, dict) and "resourceVersion" in meta
        if self.unchanged_since is not None and has_version:
            raise ValueError("give unchangedSince or metadata.resourceVersion")
        return self

    def describe_change(self) -> str:
        return f"update {_describe_manifest(self.object)}"

    def lint(self, lint: LintContext, path: Path) -> None:
        _lint_object(self.object, lint, (*path, "object"))
        _lint_version(self, lint, path)


class ServerSideApply(Strict):
    """Apply an object's fields in the name of a field manager (`kubectl apply --server-side`)."""

    object: Manifest
    field_manager: str = Field(min_length=1, max_length=128, description="who owns these fields")
    force: bool = Field(default=False, description="take over fields that others own")
    subresource: Subresource | None = None

    def describe_change(self) -> str:
        subresource = _describe_subresource(self.subresource)
        return f"apply {_describe_manifest(self.object)}{subresource} by {self.field_manager}"

    def lint(self, lint: LintContext, path: Path) -> None:
        # Without a subresource it makes the object, if it is not there.
        if self.subresource is not None:
            _lint_object(self.object, lint, (*path, "object"))


class Evict(Strict):
    """Ask for a pod's eviction, as `kubectl drain` does."""

    pod: str = Field(description="name of the pod")
    namespace: str | None = None

    def describe_change(self) -> str:
        return f"evict pod {self.pod}"

    def lint(self, lint: LintContext, path: Path) -> None:
        lint.expects_object(path, "Pod", self.pod, self.namespace)


class Bind(Strict):
    """Bind a pod to a node by its subresource `binding`, as a scheduler does."""

    pod: str = Field(description="name of the pod")
    node: str = Field(description="name of the node")
    namespace: str | None = None

    def describe_change(self) -> str:
        return f"bind pod {self.pod} to {self.node}"

    def lint(self, lint: LintContext, path: Path) -> None:
        lint.expects_object(path, "Pod", self.pod, self.namespace)


def _lint_object(obj: Manifest, lint: LintContext, path: Path) -> None:
    """Report unless an object that is there is replaced, and has the fields of its kind."""
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        lint.report_error(path, "needs apiVersion and kind")
        return
    meta = as_mapping(obj.get("metadata"))
    selector = ObjectSelector(
        api_version=version,
        kind=kind,
        name=as_text(meta.get("name")),
        namespace=as_text(meta.get("namespace")) or None,
    )
    lint.expects_selection(path, selector)
    lint.check_fields(path, obj, selector)


def _lint_version(change: Patch | Update, lint: LintContext, path: Path) -> None:
    if change.unchanged_since is not None:
        lint.expects_capture((*path, "unchangedSince"), change.unchanged_since)


def _describe_manifest(obj: Manifest) -> str:
    return f"{obj.get('kind')} {(obj.get('metadata') or {}).get('name')}"


def _describe_subresource(subresource: str | None) -> str:
    return f" ({subresource})" if subresource else ""


class Changes(Strict):
    """The verbs that a step and ``rejected`` have in common, and how they are sent."""

    patch: Patch | None = Field(
        default=None, description="change one object by a merge patch, or by a JSON patch"
    )
    update: Update | None = Field(default=None, description="replace one object")
    server_side_apply: ServerSideApply | None = Field(
        default=None, description="apply an object's fields in the name of a field manager"
    )
    evict: Evict | None = Field(default=None, description="ask for a pod's eviction")
    bind: Bind | None = Field(default=None, description="bind a pod to a node")
    dry_run: bool = Field(default=False, description="the API server checks it and stores nothing")

    account: AccountName | None = Field(
        default=None,
        alias="as",
        description="in the name of this service account (spec.accounts); default: who runs it",
    )

    @property
    def verbs(self) -> tuple[str, ...]:
        """Return the fields that are set and say what is done."""
        return tuple(sorted(self.model_fields_set - MODIFIERS))

    def describe_change(self) -> str:
        """Return the change in words; empty if it is none of those here."""
        return next((change.describe_change() for _, change in self._changes), "")

    def lint_changes(self, lint: LintContext, path: Path) -> None:
        """Report what is changed and not there, and in whose name; ``path`` has the verbs."""
        if self.account is not None:
            lint.expects_account((*path, "as"), self.account)
        for verb, change in self._changes:
            change.lint(lint, (*path, verb))

    @property
    def _changes(self) -> Iterator[tuple[str, Patch | Update | ServerSideApply | Evict | Bind]]:
        """Yield the change, with its verb in the document; nothing if it is none of those here."""
        for verb, change in (
            ("patch", self.patch),
            ("update", self.update),
            ("serverSideApply", self.server_side_apply),
            ("evict", self.evict),
            ("bind", self.bind),
        ):
            if change is not None:
                yield verb, change


MODIFIERS = frozenset({"account", "dry_run", "name", "parallel"})
"""Fields of `Changes` that say how, not what."""
