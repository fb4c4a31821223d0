"""A DeviceTaintRule for every device is made on no cluster that belongs to others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from conformance.engine.setup import Setup
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import UsageError
from tests.engine.miniature import write

RULE = """\
{{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {{name: "${{name.r}}"}},
        spec: {{deviceSelector: {selector}, taint: {{key: a.org/b, effect: NoExecute}}}}}}"""
OWN = "{driver: '${driver}'}"
MADE = f"- apply:\n    - {RULE.format(selector=OWN)}\n"
PATCH = "- patch: {{kind: DeviceTaintRule, name: '${{name.r}}', patch: {}}}\n"

SERVER_SIDE = "- serverSideApply: {fieldManager: m, "
EXPECT = "- expect: [{none: {kind: Event}}]\n"

STEPS = {
    "apply": f"- apply:\n    - {RULE.format(selector='{}')}\n",
    "null": f"- apply:\n    - {RULE.format(selector='{driver: null}')}\n",
    "server-side apply": SERVER_SIDE + f"object: {RULE.format(selector='{}')}}}\n",
    "update": MADE + f"- update: {{object: {RULE.format(selector='{}')}}}\n",
    "merge patch": MADE + PATCH.format("{spec: {deviceSelector: {driver: null}}}"),
    "JSON patch": MADE + PATCH.format("[{op: add, path: /spec/deviceSelector, value: {}}]"),
    "JSON patch of its field": MADE
    + PATCH.format("[{op: remove, path: /spec/deviceSelector/driver}]"),
}
RIGHT = {
    "its own": MADE,
    "none, which is no device": f"- apply:\n    - {RULE.format(selector='null')}\n",
    "another patch": MADE + PATCH.format("{spec: {taint: {effect: NoSchedule}}}"),
    "another driver": MADE
    + PATCH.format("[{op: replace, path: /spec/deviceSelector, value: {pool: p}}]"),
}


@pytest.mark.parametrize("cluster", ["kubeconfig", None])
@pytest.mark.parametrize("way", [*STEPS, *RIGHT])
def test_it_is_refused_before_anything_runs(
    way: str, cluster: Literal["kubeconfig"] | None, tmp_path: Path
) -> None:
    steps = {**STEPS, **RIGHT}[way] + EXPECT
    file = write(tmp_path, steps, feature="DeviceTaintRules", tier="allocation")
    scenarios = load_scenarios([file])
    with open_reference(TargetOptions()) as opened:
        options = replace(opened.options, cluster=cluster)
        setup = Setup("run", replace(opened, options=options))
        if cluster is None or way in RIGHT:
            setup.check_bindings(scenarios)
        else:
            with pytest.raises(
                UsageError, match="makes a DeviceTaintRule for every device, and so"
            ):
                setup.check_bindings(scenarios)
