"""The defects: what goes wrong, and which scenarios should notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.mutants.real_driver import (
    answering,
    preparing,
    publishing,
    refusing,
    registering,
    remembering,
    specs,
)
from tests.mutants.real_driver.replacement import PutIn, both


@dataclass(frozen=True)
class DriverFault:
    """One defect.

    Attributes:
        wrong: what goes wrong, in a line.
        put_in: puts it into this process.
        met_with: the last parts of the ids of the scenarios that it is met with on a cluster.
        hidden: why nothing can notice it on a cluster that is not ours.
        breaks: the rule of `dra-conformance driver-check` that catches it; empty: only containers
            show it.
    """

    wrong: str
    put_in: PutIn
    met_with: tuple[str, ...] = ()
    hidden: str = ""
    breaks: str = ""


_SHARE = ("shared-claim-released-after-last-pod",)
_EACH = ("template-gives-each-pod-a-device",)
_AGAIN = ("cleanup-claim-used-again",)
_FREED = ("cleanup-waiting-pod-gets-freed-device",)
_REQUESTS = ("container-sees-only-its-request",)
_RUNS = ("generated-claim-containers-share-device",)
_IN_USE = ("device-in-use-is-refused",)
_CDI = ("cleanup-cdi-spec-removed",)
_RESTARTS = (
    "claims-unprepared-after-last-pod",
    "driver-restart-keeps-claims",
    "kubelet-restart-prepares-again",
    "refused-claim-is-given-up",
)

_MET: Final[Mapping[str, DriverFault]] = {
    "none": DriverFault(
        "nothing: the driver as it is",
        lambda: None,
        (*_SHARE, *_EACH, *_AGAIN, *_FREED, *_REQUESTS, *_RUNS, *_CDI, *_IN_USE, *_RESTARTS),
    ),
    "never-unprepares": DriverFault(
        "unprepare says yes and does nothing",
        preparing.never_unprepares,
        (*_FREED, *_CDI),
        breaks="unprepare/frees-the-device",
    ),
    "never-unprepares-nor-looks": DriverFault(
        "unprepare says yes and does nothing, and prepare gives devices that another claim has",
        both(preparing.never_unprepares, preparing.looks_at_no_other_claim),
        _IN_USE,
        breaks="cdi/gone-after-unprepare",
    ),
    "looks-at-no-other-claim": DriverFault(
        "prepare gives a device that another claim has",
        preparing.looks_at_no_other_claim,
        _IN_USE,
        breaks="refuse/device-in-use",
    ),
    "prepared-again-fails": DriverFault(
        "to prepare a claim that is prepared is an error",
        preparing.refuses_prepared,
        _IN_USE,
        breaks="prepare/again-gives-the-same",
    ),
    "prepared-again-gets-others": DriverFault(
        "a claim that is prepared once more gets other devices",
        preparing.others_when_asked_again,
        _IN_USE,
        breaks="prepare/again-gives-the-same",
    ),
    "unprepare-of-unknown-fails": DriverFault(
        "to unprepare a claim that is not prepared is an error",
        preparing.refuses_unknown,
        ("refused-claim-is-given-up",),
        breaks="unprepare/unknown-claim-succeeds",
    ),
    "loses-checkpoint": DriverFault(
        "a driver that starts knows nothing of what was prepared before",
        preparing.loses_checkpoint,
        ("driver-restart-keeps-claims",),
        "somebody else's driver is not restarted",
        breaks="restart/cdi-devices-outlive-a-kill",
    ),
    "publishes-once": DriverFault(
        "slices that somebody deletes are not published again",
        publishing.once,
        ("kubelet-restart-prepares-again",),
        "somebody else's slices are not deleted, nor their kubelet restarted, which does it",
        breaks="slices/deleted-slice-comes-back",
    ),
    "first-device-for-all": DriverFault(
        "every claim gets the first device of the node",
        both(preparing.first_device, preparing.looks_at_no_other_claim),
        _EACH,
        breaks="prepare/every-device-can-be-prepared",
    ),
    "neighbour-device": DriverFault(
        "a claim gets the device beside its own",
        preparing.neighbour,
        _RUNS,
        breaks="prepare/devices-are-those-allocated",
    ),
    "one-device-of-a-claim": DriverFault(
        "of a claim only the first device is prepared",
        preparing.only_first,
        _FREED,
        breaks="prepare/several-devices-of-a-request",
    ),
    "devices-of-other-requests": DriverFault(
        "the answer names for each request the CDI device of another one",
        preparing.swapped_requests,
        _REQUESTS,
    ),
    "names-no-requests": DriverFault(
        "the answer does not say which device is for which request",
        preparing.no_requests,
        _REQUESTS,
        breaks="prepare/devices-are-told-apart",
    ),
    "prepared-only-once": DriverFault(
        "a claim that was prepared in this process before is refused",
        preparing.prepared_only_once,
        _AGAIN,
        breaks="unprepare/claim-can-be-prepared-anew",
    ),
    "answers-without-claim": DriverFault(
        "the answer to prepare lacks the claim",
        preparing.answers_without_claim,
        _RUNS,
        breaks="prepare/answers-exactly-the-claim",
    ),
    "answers-with-other-uid": DriverFault(
        "the answer to prepare is for a claim with another uid",
        preparing.other_uid,
        _RUNS,
        breaks="prepare/answers-exactly-the-claim",
    ),
    "unprepares-without-answer": DriverFault(
        "the answer to unprepare lacks the claim",
        preparing.unprepares_without_answer,
        _AGAIN,
        breaks="unprepare/answers-exactly-the-claim",
    ),
    "leaves-cdi-specs": DriverFault(
        "unprepare leaves the CDI spec behind",
        preparing.leaves_cdi_specs,
        _CDI,
        "it is a file on the node, which no other claim refers to",
        breaks="cdi/gone-after-unprepare",
    ),
    "no-device-files": DriverFault(
        "containers get the variables of a device but not its files",
        preparing.no_device_files,
        _RUNS,
    ),
    "device-files-cannot-be-opened": DriverFault(
        "containers get device files without the right to open them",
        preparing.files_without_permission,
        ("device-files-are-those-of-the-claim",),
    ),
    "ignores-configuration": DriverFault(
        "opaque configuration is not applied",
        preparing.ignores_configuration(None),
        ("claim-config-reaches-container", "class-config-reaches-container"),
        breaks="refuse/unknown-configuration",
    ),
    "ignores-class-configuration": DriverFault(
        "opaque configuration of classes is not applied",
        preparing.ignores_configuration("FromClass"),
        ("class-config-reaches-container",),
    ),
    "publishes-devices-twice": DriverFault(
        "each device is in two pools",
        publishing.twice,
        (*_FREED, *_EACH),
        breaks="prepare/every-device-can-be-prepared",
    ),
    "registers-another-name": DriverFault(
        "the driver registers itself with another name",
        registering.another_name,
        _RUNS,
        breaks="slices/published",
    ),
    "registers-unknown-version": DriverFault(
        "the driver offers only a version that no kubelet knows",
        registering.unknown_version,
        _RUNS,
        breaks="registration/offers-a-known-version",
    ),
}

FAULTS: Final[Mapping[str, DriverFault]] = {
    **_MET,
    **{
        name: DriverFault(wrong, put_in, breaks=breaks)
        for module in (answering, publishing, refusing, registering, remembering, specs)
        for name, (wrong, put_in, breaks) in module.OF_THE_CONTRACT.items()
    },
}
