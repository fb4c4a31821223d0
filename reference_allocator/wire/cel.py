"""CEL questions: an expression and a device in, its value for the device out.

A line in: {"id", "expression", "device": {"driver", "attributes", "capacity",
"allowMultipleAllocations"}, "features", "env", "derived"}; a line out: {"id", "match" or
"attribute", "compileError", "error", "unsupported", "maxCost", "type"}. `env` is StoredExpressions
(what the scheduler uses, the default) or NewExpressions (what the API server admits). The oracle
measures time with `repeat`; here it is read and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reference_allocator.api import reading
from reference_allocator.api.limits import check_limits
from reference_allocator.cel import (
    CelCompileError,
    CelFeatures,
    CelRuntimeError,
    CelUnsupportedError,
    DerivedAttribute,
    compile_derived,
    compile_selector,
)
from reference_allocator.cel.witness import second_opinion
from reference_allocator.environment import (
    convert_device,
    derived_environment,
    selector_environment,
)
from reference_allocator.features import Features
from reference_allocator.gates import LATEST, minor_of
from reference_allocator.wire.lines import Json, answer_line, check_form

_FIELDS: Final = ("id", "expression", "device", "features", "env", "derived", "repeat")
_DEVICE: Final = {
    "driver": "string",
    "attributes": "map[string]resource/v1.DeviceAttribute",
    "capacity": "map[string]resource/v1.DeviceCapacity",
    "allowMultipleAllocations": "bool",
}
_STORED: Final = "StoredExpressions"
_NEW: Final = "NewExpressions"


def answer_cel(line: str | bytes, *, kubernetes: str = LATEST, witness: bool = False) -> str:
    """Return the answer to one line; never raise for what the line says.

    Args:
        kubernetes: the version whose environment the expression is for.
        witness: whether to add to "match" what cel-python says, as "witness", where it can say.

    Raises ValueError: the version is not known.
    """
    minor = minor_of(kubernetes)
    return answer_line(line, lambda question: _respond(question, minor, witness))


def _respond(question: Mapping[str, Any], kubernetes: str, witness: bool) -> Json:
    reading.refuse_unknown_keys(question, _FIELDS)
    expression = reading.read_string(question, "expression")
    device = reading.read_child(question, "device", _read_device) or {}
    features = _read_features(question, kubernetes)
    reading.read_integer(question, "repeat")
    derived = reading.read_boolean(question, "derived")
    if derived and derived_environment(features) != features:
        raise reading.InputError(f"Kubernetes {kubernetes} has no derived attributes", "derived")
    answer: Json = {}
    try:
        compiled = (compile_derived if derived else compile_selector)(expression, features=features)
        answer = {"maxCost": compiled.max_cost, "type": compiled.type.declared}
        subject = convert_device(features, reading.read_string(device, "driver"), device)
        if isinstance(compiled, DerivedAttribute):
            value = compiled.compute_attribute(subject)
            # An empty list is left out by Go's encoder.
            answer["attribute"] = {name: item for name, item in value.items() if item != []}
        else:
            answer["match"] = compiled.matches(subject)
            opinion = second_opinion(expression, subject) if witness else None
            if opinion is not None:
                answer["witness"] = opinion
    except CelCompileError as error:
        return {"compileError": str(error)}
    except CelRuntimeError as error:
        answer["error"] = str(error)
    except CelUnsupportedError as error:
        answer["unsupported"] = error.message
    return answer


def _read_device(value: object) -> Mapping[str, Any]:
    source = reading.expect_object(value)
    reading.refuse_unknown_keys(source, _DEVICE)
    for name, kind in _DEVICE.items():
        if source.get(name) is not None:
            try:
                check_form(source[name], kind)
            except reading.InputError as error:
                raise error.with_parent(name) from None
    check_limits("Device", source)
    return source


def _read_features(question: Mapping[str, Any], kubernetes: str) -> CelFeatures:
    features = reading.read_child(question, "features", Features.from_dict) or Features()
    env = reading.read_string(question, "env") or _STORED
    if env not in (_STORED, _NEW):
        raise reading.InputError(
            f"expected {_STORED} or {_NEW}, got {reading.describe_value(env)}", "env"
        )
    if env == _STORED:
        return selector_environment(features, kubernetes)
    return CelFeatures(
        kubernetes=kubernetes,
        consumable_capacity=features.consumable_capacity,
        list_type_attributes=features.list_type_attributes,
        stored=False,
    )
