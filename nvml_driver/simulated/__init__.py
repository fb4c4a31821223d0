"""GPUs without GPUs: a libnvidia-ml.so.1 of our own and the profiles that say what it shows.

``profile`` reads and checks the JSON profiles, ``build`` compiles ``nvml.c`` on first use, and
``devices`` makes what surrounds NVML on a real node: a sysfs tree and character devices.
"""
