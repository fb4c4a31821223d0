"""What a node reports of its GPUs: NVML, real or simulated, and what the kernel shows beside it."""
