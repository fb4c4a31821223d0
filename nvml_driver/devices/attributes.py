"""Reads attributes of the driver and of a GPU's model from NVML.

Words, types and formats are those of kubernetes-sigs/dra-driver-nvidia-gpu, ``deviceinfo.go`` and
``nvlib.go``. What NVML cannot report is left out (see ``nvml.library``).
"""

from __future__ import annotations

import logging
from typing import Any

import pynvml

from nvml_driver.model.inventory import Attribute
from nvml_driver.nvml.library import add_attribute, ask_nvml, normalize_version

# The words of go-nvlib's device package, which the published attributes use.
BRANDS = {
    pynvml.NVML_BRAND_UNKNOWN: "Unknown",
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_NVS: "NVS",
    pynvml.NVML_BRAND_GRID: "Grid",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA_VAPPS: "NvidiaVApps",
    pynvml.NVML_BRAND_NVIDIA_VPC: "NvidiaVPC",
    pynvml.NVML_BRAND_NVIDIA_VCS: "NvidiaVCS",
    pynvml.NVML_BRAND_NVIDIA_VWS: "NvidiaVWS",
    pynvml.NVML_BRAND_NVIDIA_CLOUD_GAMING: "NvidiaCloudGaming",
    pynvml.NVML_BRAND_QUADRO_RTX: "QuadroRTX",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NvidiaRTX",
    pynvml.NVML_BRAND_NVIDIA: "Nvidia",
    pynvml.NVML_BRAND_GEFORCE_RTX: "GeForceRTX",
    pynvml.NVML_BRAND_TITAN_RTX: "TitanRTX",
}
ARCHITECTURES = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "Kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada Lovelace",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
}
ADDRESSING_MODES = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "None",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}


def read_driver_attributes(nvml: Any) -> dict[str, Attribute]:
    """Return the versions of the driver and of CUDA, which all GPUs of the node share."""
    attributes: dict[str, Attribute] = {}
    text = ask_nvml("the driver", "driverVersion", nvml.nvmlSystemGetDriverVersion)
    if text is not None:
        add_attribute(
            attributes, "the driver", "driverVersion", "version", normalize_version(str(text)), text
        )
    cuda = ask_nvml("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion_v2)
    if cuda is None:  # drivers before 2018 have the first version of the function only
        cuda = ask_nvml("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion)
    if cuda is not None:
        dotted = normalize_version(f"{cuda // 1000}.{cuda % 1000 // 10}")
        add_attribute(attributes, "the driver", "cudaDriverVersion", "version", dotted, cuda)
    return attributes


def add_model_attributes(
    nvml: Any, handle: Any, label: str, attributes: dict[str, Attribute]
) -> int | None:
    """Put what model it is into ``attributes``; return NVML's number of the architecture."""
    product = ask_nvml(label, "productName", nvml.nvmlDeviceGetName, handle)
    if product is not None:
        add_attribute(attributes, label, "productName", "string", str(product), product)
    brand = ask_nvml(label, "brand", nvml.nvmlDeviceGetBrand, handle)
    if brand is not None:
        add_attribute(attributes, label, "brand", "string", BRANDS.get(brand), brand)
    architecture = ask_nvml(label, "architecture", nvml.nvmlDeviceGetArchitecture, handle)
    if architecture is not None:
        word = ARCHITECTURES.get(architecture)
        add_attribute(attributes, label, "architecture", "string", word, architecture)
    compute = ask_nvml(
        label, "cudaComputeCapability", nvml.nvmlDeviceGetCudaComputeCapability, handle
    )
    if compute is not None:
        dotted = normalize_version(f"{compute[0]}.{compute[1]}")
        add_attribute(attributes, label, "cudaComputeCapability", "version", dotted, compute)
    mode = ask_nvml(
        label, "addressingMode", nvml.nvmlDeviceGetAddressingMode, handle, level=logging.DEBUG
    )
    if mode is not None:
        add_attribute(
            attributes, label, "addressingMode", "string", ADDRESSING_MODES.get(mode), mode
        )
    return None if architecture is None else int(architecture)
