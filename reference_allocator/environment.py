"""The CEL environments in which a scheduler compiles the expressions of classes and claims.

Functions come and go with Kubernetes minors: a selector that sorts a list compiles in each, one
with two-variable comprehensions only where the libraries have them. Expressions are in the API
already when the scheduler reads them, so gates matter in 1.36 only (for the type of attributes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reference_allocator.cel import CelDevice, CelFeatures
from reference_allocator.features import Features
from reference_allocator.gates import MINORS, nearest_minor

_LISTS_SINCE: Final = "1.36"
_DERIVED_SINCE: Final = "1.37"
_WHEN_ASKED_SINCE: Final = "1.38"


def selector_environment(features: Features, kubernetes: str) -> CelFeatures:
    """Return the environment of the selectors of classes and requests.

    ``kubernetes``: the cluster's version; an unknown one counts as the nearest minor.
    """
    return CelFeatures(
        list_type_attributes=features.list_type_attributes, kubernetes=nearest_minor(kubernetes)
    )


def convert_device(environment: CelFeatures, driver: str, device: Mapping[str, Any]) -> CelDevice:
    """Convert a v1 Device to what the selectors of an environment see.

    Lists are values since 1.36, where they have a gate of their own.
    Raises CelRuntimeError: an attribute has no usable value; every expression fails then, until
    1.37. Since 1.38 only an expression that asks for the attribute does.
    """
    if MINORS.index(environment.kubernetes) >= MINORS.index(_WHEN_ASKED_SINCE):
        return CelDevice.from_api(driver, device, when_asked=True)
    minor = MINORS.index(environment.kubernetes) - MINORS.index(_LISTS_SINCE)
    lists = minor > 0 or (minor == 0 and environment.list_type_attributes)
    return CelDevice.from_api(driver, device, lists=lists)


def derived_environment(selectors: CelFeatures) -> CelFeatures:
    """Return the environment of derived attributes, given that of selectors.

    A minor that does not have the feature gets the environment of the first that has it.
    """
    if MINORS.index(selectors.kubernetes) >= MINORS.index(_DERIVED_SINCE):
        return selectors
    return CelFeatures(
        list_type_attributes=selectors.list_type_attributes, kubernetes=_DERIVED_SINCE
    )
