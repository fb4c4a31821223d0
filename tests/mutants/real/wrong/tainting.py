"""Taints of devices, rules that taint them, and tolerations."""

from __future__ import annotations

from tests.mutants.real.change import before, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR, TAINT_RULES, TOLERATION

_EFFECT = "switch taint.Effect {"
_TAINTS = "extended/device-taints"

WRONGS = (
    make_wrong(
        "ignores-noschedule",
        "NoSchedule taints of devices are ignored",
        before(
            ALLOCATOR,
            _EFFECT,
            "if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule && WRONG { continue }",
        ),
        by=f"{_TAINTS}/noschedule-taint-keeps-pods-away",
        judged=True,
    ),
    make_wrong(
        "ignores-noexecute",
        "NoExecute taints of devices keep no new pod away",
        before(
            ALLOCATOR,
            _EFFECT,
            "if taint.Effect == resourceapi.DeviceTaintEffectNoExecute && WRONG { continue }",
        ),
        by=f"{_TAINTS}/noexecute-taint-keeps-new-pods-away",
        judged=True,
    ),
    make_wrong(
        "none-keeps-away",
        "a taint with the effect None keeps new pods away",
        before(
            ALLOCATOR,
            _EFFECT,
            "if taint.Effect == resourceapi.DeviceTaintEffectNone && WRONG { return true }",
        ),
        by=f"{_TAINTS}/none-taint-keeps-nobody-away",
        judged=True,
    ),
    make_wrong(
        "only-first-taint",
        "only the first taint of a device is looked at",
        instead(
            ALLOCATOR,
            "for _, taint := range device.Taints {",
            "for index, taint := range device.Taints {\nif index > 0 && WRONG { break }\n",
        ),
        by=f"{_TAINTS}/second-taint-keeps-pods-away",
        judged=True,
    ),
    make_wrong(
        "ignores-taint-rules",
        "DeviceTaintRules are not applied",
        before(
            TAINT_RULES, "deviceSelector := taintRule.Spec.DeviceSelector", "if WRONG { continue }"
        ),
        by="extended/device-taint-rules/noschedule-rule-withholds-device",
        judged=True,
    ),
    make_wrong(
        "ignores-toleration-key",
        "a toleration covers taints of every key",
        instead(
            TOLERATION, "toleration.Key != taint.Key {", "toleration.Key != taint.Key && !WRONG {"
        ),
        by=f"{_TAINTS}/toleration-of-one-key",
        judged=True,
    ),
    make_wrong(
        "ignores-toleration-effect",
        "a toleration covers taints of every effect",
        instead(
            TOLERATION,
            "toleration.Effect != taint.Effect {",
            "toleration.Effect != taint.Effect && !WRONG {",
        ),
        by=f"{_TAINTS}/toleration-of-one-effect",
        judged=True,
    ),
    make_wrong(
        "ignores-toleration-value",
        "a toleration covers taints of every value",
        instead(
            TOLERATION,
            "return toleration.Value == taint.Value",
            "return toleration.Value == taint.Value || WRONG",
        ),
        by=f"{_TAINTS}/toleration-allows-tainted-device",
        judged=True,
    ),
)
