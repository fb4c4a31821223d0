"""Reads what a node reports of its GPUs: from NVML, real or simulated, and from the kernel."""
