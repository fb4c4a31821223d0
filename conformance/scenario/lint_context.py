"""What a part of a scenario's document may ask lint, and by which it reports what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from conformance.scenario.base import ObjectSelector, PodSelector, ServerSelector
from kube.values import Obj

Path = tuple[str | int, ...]  # Of a field below the expectation or step that has it.
Pods = tuple[str, ...] | PodSelector


class LintContext(Protocol):
    """What lint knows of a scenario at one step, and where an expectation or step reports errors.

    Every ``path`` is that of a field below the expectation or step.
    """

    def report_error(self, path: Path, message: str) -> None:
        """Report an error that no other method finds."""

    def expects_step(self, path: Path, name: str) -> None:
        """Report an error unless an earlier step has this name."""

    def expects_account(self, path: Path, name: str) -> None:
        """Report an error unless the scenario has this service account (``spec.accounts``)."""

    def expects_capture(self, path: Path, name: str) -> None:
        """Report an error unless an earlier step captures an object by this name."""

    def expects_watch(self, path: Path, name: str) -> ServerSelector | None:
        """Report an error unless an earlier step watches by this name; return what it watches."""

    def expects_object(
        self, path: Path, kind: str, name: str, namespace: str | None = None
    ) -> None:
        """Report an error unless an earlier step makes this object.

        ``namespace`` None is the scenario's own.
        """

    def expects_selection(
        self, path: Path, selector: ObjectSelector, *, gone: bool = False
    ) -> None:
        """Report an error unless a selector names something; with ``gone`` also later, or never."""

    def expects_container(self, path: Path, pods: Pods, name: str) -> None:
        """Report an error unless each of the pods has this container."""

    def expects_pod_claim(self, path: Path, pods: Pods, name: str) -> None:
        """Report an error unless each of the pods has this name in ``spec.resourceClaims``."""

    def expects_request(
        self,
        path: Path,
        name: str,
        claim: str | None,
        pods: Pods,
        pod_claim: str | None,
        *,
        alternatives: bool = False,
    ) -> None:
        """Report an error unless a ResourceClaim has this request.

        The claim is named, or it is each behind a name in ``spec.resourceClaims`` of the pods.

        ``alternatives``: a request is named as an allocation does, as ``request/alternative``.
        """

    def expects_device(self, path: Path, name: str) -> None:
        """Report an error unless a ResourceSlice has it, where the scenario makes all devices."""

    def check_condition(
        self, path: Path, cel: Sequence[str], variable: str, selector: ObjectSelector
    ) -> None:
        """Check CEL over ``variable``, what a selector finds, and over captured objects."""

    def check_relation(self, path: Path, cel: Sequence[str], variables: Sequence[str]) -> None:
        """Check CEL over several objects, and over captured ones."""

    def check_fields(self, path: Path, value: Any, selector: ObjectSelector) -> None:
        """Check the fields of a part of an object that a selector finds."""

    def check_refused_object(self, path: Path, obj: Obj, message: str | None) -> None:
        """Check an object that must be refused for nothing but what ``message`` names.

        ``message`` None is any mistake in it.
        """

    def requires(
        self,
        path: Path,
        need: Literal["ability", "config", "gate", "hardware", "kubelet", "trait"],
        name: str = "",
    ) -> None:
        """Report an error unless the scenario says that it requires this of its target.

        ``need``: an ability, a configuration that shows in containers, a feature gate that is on,
        containers that show their hardware, a pod that runs, a trait.
        """
