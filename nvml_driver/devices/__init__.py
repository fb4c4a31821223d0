"""Turns what NVML reports into the devices of a node, and these into ResourceSlices."""
