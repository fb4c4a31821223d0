"""Taints of devices, rules that taint them, and tolerations."""

from __future__ import annotations

from tests.mutants.real.change import Wrong, before, instead
from tests.mutants.real.places import ALLOCATOR, TAINT_RULES, TOLERATION

_EFFECT = "switch taint.Effect {"
_TAINTS = "extended/device-taints"

WRONGS = (
    Wrong(
        "ignores-noschedule",
        "NoSchedule taints of devices are ignored",
        (
            before(
                ALLOCATOR,
                _EFFECT,
                "if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule && WRONG { continue }",
            ),
        ),
        (f"{_TAINTS}/noschedule-taint-keeps-pods-away",),
        judged=True,
    ),
    Wrong(
        "ignores-noexecute",
        "NoExecute taints of devices keep no new pod away",
        (
            before(
                ALLOCATOR,
                _EFFECT,
                "if taint.Effect == resourceapi.DeviceTaintEffectNoExecute && WRONG { continue }",
            ),
        ),
        (f"{_TAINTS}/noexecute-taint-keeps-new-pods-away",),
        judged=True,
    ),
    Wrong(
        "none-keeps-away",
        "a taint with the effect None keeps new pods away",
        (
            before(
                ALLOCATOR,
                _EFFECT,
                "if taint.Effect == resourceapi.DeviceTaintEffectNone && WRONG { return true }",
            ),
        ),
        (f"{_TAINTS}/none-taint-keeps-nobody-away",),
        judged=True,
    ),
    Wrong(
        "only-first-taint",
        "only the first taint of a device is looked at",
        (
            instead(
                ALLOCATOR,
                "for _, taint := range device.Taints {",
                "for index, taint := range device.Taints {\nif index > 0 && WRONG { break }\n",
            ),
        ),
        (f"{_TAINTS}/second-taint-keeps-pods-away",),
        judged=True,
    ),
    Wrong(
        "ignores-taint-rules",
        "DeviceTaintRules are not applied",
        (
            before(
                TAINT_RULES,
                "deviceSelector := taintRule.Spec.DeviceSelector",
                "if WRONG { continue }",
            ),
        ),
        ("extended/device-taint-rules/noschedule-rule-withholds-device",),
        judged=True,
    ),
    Wrong(
        "ignores-toleration-key",
        "a toleration covers taints of every key",
        (
            instead(
                TOLERATION,
                "toleration.Key != taint.Key {",
                "toleration.Key != taint.Key && !WRONG {",
            ),
        ),
        (f"{_TAINTS}/toleration-of-one-key",),
        judged=True,
    ),
    Wrong(
        "ignores-toleration-effect",
        "a toleration covers taints of every effect",
        (
            instead(
                TOLERATION,
                "toleration.Effect != taint.Effect {",
                "toleration.Effect != taint.Effect && !WRONG {",
            ),
        ),
        (f"{_TAINTS}/toleration-of-one-effect",),
        judged=True,
    ),
    Wrong(
        "ignores-toleration-value",
        "a toleration covers taints of every value",
        (
            instead(
                TOLERATION,
                "return toleration.Value == taint.Value",
                "return toleration.Value == taint.Value || WRONG",
            ),
        ),
        (f"{_TAINTS}/toleration-allows-tainted-device",),
        judged=True,
    ),
)
