"""From NVML to the devices of a node, and from them to ResourceSlices."""
