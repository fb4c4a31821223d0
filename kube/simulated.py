"""How what is simulated says so: nobody should take it for hardware."""

from __future__ import annotations

from typing import Final

SIMULATED_ATTRIBUTE: Final = "dra-conformance.dev/simulated"
"""Attribute of a device that is simulated, in its ResourceSlice."""

MARK: Final = "simulated nvidia-smi of nvml-dra-driver: there is no hardware"
"""The first line that a simulated ``nvidia-smi`` prints in a container."""
