"""Defects of CDI: what specs say, what ids stand for, and what containers get of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence

from kube.cdi.edits import ContainerEdits
from kube.observations import ListedClaim
from kube.values import Obj
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.podstatus import PodResources
from tests.mutants.driver.preparation import writes
from tests.mutants.replacing import Defects, instead


@instead(PodResources.list_claims)
def lists_ids_of_nothing(
    _: object, original: Callable[..., Sequence[ListedClaim] | None], pod: Obj, container: str
) -> Sequence[ListedClaim] | None:
    found = original(pod, container)
    return found and [
        dataclasses.replace(
            claim,
            devices=tuple(
                dataclasses.replace(device, cdi=tuple(f"{one}-old" for one in device.cdi))
                for device in claim.devices
            ),
        )
        for claim in found
    ]


@instead(NodeDriver.edits)
def without_common_edits(
    driver: NodeDriver, original: Callable[..., ContainerEdits], ids: Iterable[str]
) -> ContainerEdits:
    found = original(ids)
    common = [spec.get("containerEdits") or {} for _, spec in driver.specs()]
    names = {text.partition("=")[0] for one in common for text in one.get("env") or ()}
    env = {name: value for name, value in found.env.items() if name not in names}
    return dataclasses.replace(found, env=env)


def version_too_old(spec: str) -> str:
    return re.sub(r'("cdiVersion": ")[^"]+', r"\g<1>0.3.0", spec)


DEFECTS: Defects = {
    "cdi-edits-of-specs-are-lost": without_common_edits,
    "cdi-ids-of-nothing": lists_ids_of_nothing,
    "cdi-version-too-old": writes(version_too_old),
}
