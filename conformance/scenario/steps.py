"""The steps of a scenario: what each may do, how it is described, and what it needs.

A verb is a field of :class:`Step`, a class here, which describes and checks it, and a class in
``conformance.engine.run.verbs``, which carries it out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

from pydantic import Field, model_validator

from conformance.scenario.base import Duration, Manifest, ObjectSelector, ServerSelector, Strict
from conformance.scenario.changes import CapturedName, Changes, Delete
from conformance.scenario.churn import Churn
from conformance.scenario.expectations import AnyExpectation
from conformance.scenario.expectations.base import Timed
from conformance.scenario.lint_context import LintContext
from conformance.seam.abilities import Ability, fault_ability
from kube.observations import Health

NextVersion = Literal["startNext", "startUnregistered", "killNext", "replace"]
"""What a rolling update of a driver does: its next version runs beside it for a while."""

GATED: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
"""Components with Kubernetes' feature gates."""


class Fault(Strict):
    """Disturb a component of the cluster, where the target can (``requires.abilities``).

    What a scenario has stopped is started again at its end.
    """

    component: str = Field(
        description=(
            "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, or of each node:"
            " containerd, kubelet, driver, other-driver, node (the whole of it)"
        )
    )
    action: Literal["restart", "kill", "stop", "start", "upgrade"] | NextVersion = Field(
        default="restart",
        description=(
            "kill: stop at once; upgrade: restart as the next minor (ability upgrade); restart of a"
            " node: reboot; of a driver also startNext (its next"
            " version beside it), startUnregistered (one that never registers), killNext (what was"
            " started beside it), replace (startNext unless it was done, then stop)"
        ),
    )
    feature_gates: dict[str, bool] = Field(
        default_factory=dict,
        description="restart with these beside the cluster's own gates (ability feature-gates)",
    )
    node: str | None = Field(default=None, description="of this node only")
    node_of: str | None = Field(default=None, description="of the node only on which this pod is")

    @model_validator(mode="after")
    def _check_fault(self) -> Fault:
        if self.node is not None and self.node_of is not None:
            raise ValueError("give node or nodeOf, not both")
        if self.of_next_version and self.component != "driver":
            raise ValueError(f"only a driver has a next version to {self.action}")
        if self.feature_gates and self.action != "restart":
            raise ValueError("featureGates go with action: restart")
        if self.feature_gates and self.component not in GATED:
            raise ValueError(f"featureGates are of {', '.join(GATED)}")
        return self

    @property
    def of_next_version(self) -> bool:
        """Return whether the action is about a second instance of a driver."""
        return self.action in get_args(NextVersion)

    def lint(self, lint: LintContext) -> None:
        """Report to ``lint`` what the target must be able to do, and the pod on whose node."""
        lint.requires(("fault",), "ability", fault_ability(self.component))
        if self.of_next_version:
            lint.requires(("fault",), "trait", "rollingUpdate")
        if self.action == "upgrade":
            lint.requires(("fault",), "ability", Ability.UPGRADE)
        if self.feature_gates:
            lint.requires(("fault",), "ability", Ability.FEATURE_GATES)
        for gate in self.feature_gates:
            lint.requires(("fault", "featureGates"), "gate", gate)
        if self.node_of is not None:
            lint.expects_object(("fault", "nodeOf"), "Pod", self.node_of)

    def describe(self) -> str:
        """Return the fault in words, for example ``stop driver of the node of pod0``."""
        where = f" of {self.node}" if self.node else ""
        where = f" of the node of {self.node_of}" if self.node_of else where
        gates = (f"{name}={str(on).lower()}" for name, on in self.feature_gates.items())
        how = " with " + ", ".join(gates) if self.feature_gates else ""
        return f"{self.action} {self.component}{where}{how}"


class CopyAllocation(Strict):
    """Allocate to a ResourceClaim the devices that another one has, as if no pod used them.

    A scheduler that has lost count does so (kubernetes/kubernetes#141471), and a driver is the last
    that can notice. Needs ``requires: {abilities: [double-allocation]}``, and ``exclusive: true``
    where the devices are a driver's.
    """

    source: str = Field(alias="from", description="a ResourceClaim that is allocated")
    to: str = Field(description="one that is not, with requests of the same names")

    def lint(self, lint: LintContext) -> None:
        """Report to ``lint`` both claims, and what the target must be able to do."""
        lint.expects_object(("copyAllocation", "from"), "ResourceClaim", self.source)
        lint.expects_object(("copyAllocation", "to"), "ResourceClaim", self.to)
        lint.requires(("copyAllocation",), "ability", Ability.DOUBLE_ALLOCATION)

    def describe(self) -> str:
        return f"allocate to {self.to} what {self.source} has"


class Stimulate(Strict):
    """Have the driver find devices healthy or not, where its profile says how (``stimulus``).

    Needs ``requires: {abilities: [device-health]}``. What a scenario has made other than healthy is
    healthy again at its end.
    """

    claim: str | None = Field(
        default=None,
        description="a ResourceClaim, whose devices are meant; with Healthy it may be left out,"
        " for all that the scenario has made otherwise",
    )
    request: str | None = Field(default=None, description="the devices of this request only")
    health: Health = Field(description="what they are from now on")

    @model_validator(mode="after")
    def _check_claim(self) -> Stimulate:
        if self.claim is None and (self.health != "Healthy" or self.request is not None):
            raise ValueError("say of which claim; only health: Healthy alone needs none")
        return self

    def lint(self, lint: LintContext) -> None:
        """Report to ``lint`` the claim, its request, and what the target must be able to do."""
        lint.requires(("stimulate",), "kubelet")
        lint.requires(("stimulate",), "ability", Ability.DEVICE_HEALTH)
        if self.claim is not None:
            lint.expects_object(("stimulate", "claim"), "ResourceClaim", self.claim)
        if self.request is not None:
            lint.expects_request(("stimulate", "request"), self.request, self.claim, (), None)

    def describe(self) -> str:
        """Return the stimulus in words, for example ``make the devices of claim one Unhealthy``."""
        if self.claim is None:
            return "make all devices Healthy again"
        request = f" for request {self.request}" if self.request else ""
        return f"make the devices of claim {self.claim}{request} {self.health}"


class Step(Changes):
    """One step: exactly one of its fields, but for those that say how."""

    name: CapturedName | None = Field(
        default=None, description="by which `since` of a later expectation knows this step"
    )
    parallel: bool = Field(
        default=False,
        description="at the same time as the steps directly before and after it that say so, too",
    )
    apply: tuple[Manifest, ...] | None = Field(
        default=None, min_length=1, description="objects that the API server must accept"
    )
    expect: tuple[AnyExpectation, ...] | None = Field(
        default=None, min_length=1, description="what must be so, one after the other"
    )
    delete: tuple[Delete, ...] | None = Field(
        default=None, min_length=1, description="objects that are there, and are deleted"
    )
    fault: Fault | None = Field(default=None, description="stop, start or restart a component")
    capture: dict[CapturedName, ObjectSelector] | None = Field(
        default=None,
        min_length=1,
        description="name -> an object as it is now, which CEL of later expectations can read",
    )
    watch: dict[CapturedName, ServerSelector] | None = Field(
        default=None,
        min_length=1,
        description="name -> what is watched from now on, for `watched` of later expectations",
    )
    wait: Duration | None = Field(default=None, description="let time pass, like 5s")
    churn: Churn | None = Field(
        default=None, description="do many things at random, and see that no rule is broken"
    )
    copy_allocation: CopyAllocation | None = Field(
        default=None, description="give one device to two claims"
    )
    stimulate: Stimulate | None = Field(
        default=None, description="have the driver find devices healthy or not"
    )

    @model_validator(mode="after")
    def _check_one_verb(self) -> Step:
        if len(self.verbs) != 1:
            raise ValueError(
                "a step has exactly one of apply, expect, patch, update, serverSideApply, delete,"
                " evict, bind, capture, watch, churn, fault, stimulate, wait, copyAllocation"
                f" (found {', '.join(self.verbs) or 'none'})"
            )
        if self.dry_run and not self.verb.can_be_dry_run:
            raise ValueError("dryRun goes with patch, update, delete, evict and bind")
        if self.account is not None and not self.verb.is_request:
            raise ValueError("as goes with apply, patch, update, delete, evict and bind")
        if self.parallel and not self.verb.is_request:
            raise ValueError("parallel goes with apply, patch, update, delete, evict and bind")
        return self

    @property
    def action(self) -> str:
        """Return the one field that is set."""
        return self.verbs[0]

    @property
    def verb(self) -> Verb:
        """Return what the step does."""
        return VERBS[self.action](self)

    @property
    def seconds(self) -> float:
        """Return how many seconds the step takes at least where all is well."""
        return self.verb.seconds

    def describe(self) -> str:
        how = f" as {self.account}" if self.account else ""
        return self.verb.describe() + how + (" in parallel" if self.parallel else "")

    def lint(self, lint: LintContext) -> None:
        """Report to ``lint`` what the step refers to and needs; expectations do so themselves."""
        self.verb.lint(lint)


@dataclass(frozen=True, slots=True)
class Verb(ABC):
    """What one step does, as its document says it; a class for each verb.

    Attributes:
        is_request: it is requests that an account may send, and that may be sent in parallel.
        can_be_dry_run: the API server can check it and store nothing.
    """

    step: Step
    is_request: ClassVar[bool] = False
    can_be_dry_run: ClassVar[bool] = False

    @abstractmethod
    def describe(self) -> str:
        """Return it in a line, for example ``delete Pod pod0``."""

    def lint(self, lint: LintContext) -> None:  # noqa: B027 -- some refer to nothing
        """Report to ``lint`` what it refers to and needs."""

    @property
    def seconds(self) -> float:
        """Return how many seconds it takes at least where all is well."""
        return 0.0


class ApplyVerb(Verb):
    """Create objects that the API server must accept."""

    is_request = True

    def describe(self) -> str:
        objects = self.step.apply or ()
        names = (f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}" for obj in objects)
        return "apply " + ", ".join(names)

    def lint(self, lint: LintContext) -> None:
        self.step.lint_changes(lint, ())


class ChangeVerb(Verb):
    """One of the changes that ``rejected`` has, too."""

    is_request = can_be_dry_run = True

    def describe(self) -> str:
        return self.step.describe_change()

    def lint(self, lint: LintContext) -> None:
        self.step.lint_changes(lint, ())


class DeleteVerb(Verb):
    """Delete objects that are there."""

    is_request = can_be_dry_run = True

    def describe(self) -> str:
        return "delete " + ", ".join(item.describe() for item in self.step.delete or ())

    def lint(self, lint: LintContext) -> None:
        for position, deletion in enumerate(self.step.delete or ()):
            lint.expects_selection(("delete", position), deletion)
        self.step.lint_changes(lint, ())


class ExpectVerb(Verb):
    """Wait for expectations, which check themselves against lint."""

    def describe(self) -> str:
        return "expect " + "; ".join(item.describe() for item in self.step.expect or ())

    @property
    def seconds(self) -> float:
        timed = (item for item in self.step.expect or () if isinstance(item, Timed))
        return sum(item.consistently or 0.0 for item in timed)


class CaptureVerb(Verb):
    """Remember objects as they are now."""

    def describe(self) -> str:
        return "capture " + ", ".join(item.describe() for item in self._selectors.values())

    def lint(self, lint: LintContext) -> None:
        for name, selector in self._selectors.items():
            lint.expects_selection(("capture", name), selector)

    @property
    def _selectors(self) -> Mapping[CapturedName, ObjectSelector]:
        return self.step.capture or {}


class WatchVerb(Verb):
    """Watch from now on; what need not be there yet is nothing to check."""

    def describe(self) -> str:
        selectors = (self.step.watch or {}).values()
        return "watch " + ", ".join(item.describe() for item in selectors)


class WaitVerb(Verb):
    """Let time pass."""

    def describe(self) -> str:
        return f"wait {self.seconds:g} s"

    @property
    def seconds(self) -> float:
        return self.step.wait or 0.0


class ChurnVerb(Verb):
    """Do many things at random."""

    def describe(self) -> str:
        return f"churn for {self.seconds:g} s"

    @property
    def seconds(self) -> float:
        return self.step.churn.time if self.step.churn is not None else 0.0


class DocumentVerb(Verb):
    """A verb whose field is a document that describes and checks itself."""

    def describe(self) -> str:
        return self._document.describe()

    def lint(self, lint: LintContext) -> None:
        self._document.lint(lint)

    @property
    def _document(self) -> Fault | Stimulate | CopyAllocation:
        document = self.step.fault or self.step.stimulate or self.step.copy_allocation
        assert document is not None, "the step has this verb"
        return document


VERBS: Final[Mapping[str, type[Verb]]] = {
    "apply": ApplyVerb,
    "bind": ChangeVerb,
    "capture": CaptureVerb,
    "churn": ChurnVerb,
    "copy_allocation": DocumentVerb,
    "delete": DeleteVerb,
    "evict": ChangeVerb,
    "expect": ExpectVerb,
    "fault": DocumentVerb,
    "patch": ChangeVerb,
    "server_side_apply": ChangeVerb,
    "stimulate": DocumentVerb,
    "update": ChangeVerb,
    "wait": WaitVerb,
    "watch": WatchVerb,
}
"""Field of a step -> what it is. What the engine does then: ``conformance.engine.run.verbs``."""


def group_parallel_steps(steps: Sequence[Step]) -> list[list[int]]:
    """Return indices of steps in order; those carried out at the same time are in one list."""
    groups: list[list[int]] = []
    for index, step in enumerate(steps):
        if step.parallel and groups and steps[index - 1].parallel:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
