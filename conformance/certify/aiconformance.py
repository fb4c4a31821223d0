"""Evidence for the self-assessment that CNCF's AI conformance programme asks for.

Its checklist is a ``PRODUCT.yaml`` for each minor (github.com/cncf/k8s-ai-conformance, ``docs/``),
in which a platform says of each requirement whether it is implemented, and on which evidence. What
is made here is a fragment of one: the requirements of which DRA shows something. It certifies
nothing, and it fills in no status where the run proves none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from conformance.certify.model import ConformanceReport
from conformance.engine.events import Outcome, PlannedScenario
from conformance.engine.requirements import is_in
from conformance.engine.result import RunResult
from conformance.errors import UsageError
from conformance.resultfile.read import FILE_NAME
from conformance.scenario.base import release

_ISOLATION: Final = (
    "core/container-sees-only-its-request",
    "core/isolation-claim-of-other-namespace",
    "core/isolation-container-without-claim",
    "core/isolation-pod-without-claim",
    "core/template-gives-each-pod-a-device",
)
_SHARING: Final = (
    "core/generated-claim-containers-share-device",
    "core/shared-claim-pods-see-same-device",
    "extended/opaque-configuration/claim-config-reaches-container",
)
_VERSIONS: Final = (
    "core/gpu-by-driver-version-and-memory",
    "extended/device-preparation/hardware-model-and-memory-as-published",
)


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A requirement of the checklists.

    Attributes:
        section: of the checklist.
        minors: Kubernetes 1.x whose checklists have it.
        scenarios: ids of what shows it; empty is all of the core.
    """

    section: str
    id: str
    level: str
    minors: range
    scenarios: tuple[str, ...]


REQUIREMENTS: Final = (
    _Requirement("accelerators", "dra_support", "MUST", range(34, 36), ()),
    _Requirement("accelerators", "driver_runtime_management", "SHOULD", range(35, 38), _VERSIONS),
    _Requirement("accelerators", "gpu_sharing", "SHOULD", range(35, 38), _SHARING),
    _Requirement("security", "secure_accelerator_access", "MUST", range(34, 38), _ISOLATION),
)
"""What the suite can show something of, as the checklists of 1.34 to 1.37 had it in 2026."""


def fragment(
    report: ConformanceReport, result: RunResult, catalogue: Sequence[PlannedScenario]
) -> str:
    """A fragment of a ``PRODUCT.yaml``.

    Args:
        report: what was made of the run.
        result: the run.
        catalogue: every scenario that the suite ships.

    Raises:
        UsageError: there is no checklist of the cluster's minor.
    """
    version = release(report.kubernetes_version)
    minor = version.minor if version is not None else 0
    asked = [item for item in REQUIREMENTS if minor in item.minors]
    if not asked:
        raise UsageError(
            f"--format ai-conformance: Kubernetes {report.kubernetes_version:.40} has no checklist;"
            " there are those of 1.34 to 1.37"
        )
    core = frozenset(
        item.id
        for item in catalogue
        if item.level == "core" and is_in(report.kubernetes_version, item.kubernetes)
    )
    about = report.implementation
    spec: dict[str, list[dict[str, Any]]] = {}
    for item in asked:
        status, notes = _shown(frozenset(item.scenarios) or core, report, result)
        spec.setdefault(item.section, []).append(
            {
                "id": item.id,
                "level": item.level,
                "status": status,
                "evidence": ["file://results/junit.xml", f"file://results/{FILE_NAME}"],
                "notes": notes,
            }
        )
    document = {
        "metadata": {
            "kubernetesVersion": f"v1.{minor}",
            "platformName": about.project,
            "platformVersion": about.version,
            "vendorName": about.organization,
            "websiteUrl": about.url,
        },
        "spec": spec,
    }
    return (
        "# A fragment for a self-assessment (PRODUCT.yaml, github.com/cncf/k8s-ai-conformance).\n"
        "# It is no certification: whoever submits it answers for it. Where a status is empty,\n"
        "# the run proves nothing of the requirement.\n"
        + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    )


def _shown(wanted: frozenset[str], report: ConformanceReport, result: RunResult) -> tuple[str, str]:
    """Status and notes of a requirement that these scenarios show."""
    outcomes = result.outcomes
    passed = wanted & set(outcomes[Outcome.PASSED])
    failed = wanted & set(outcomes[Outcome.FAILED])
    said = (
        f"dra-conformance {report.suite.version}: {len(passed)} of {len(wanted)} scenarios passed"
    )
    if rest := wanted - passed:
        said += f"; not {', '.join(sorted(rest))}"
    if report.uncertified:
        return "", f"{said}. This proves nothing: {'; '.join(report.uncertified)}"
    if failed:
        return "Not Implemented", said
    if not passed:
        return "", said
    return "Partially Implemented" if rest else "Implemented", said
