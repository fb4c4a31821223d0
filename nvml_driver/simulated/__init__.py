"""Simulates GPUs: a libnvidia-ml.so.1 of our own and the profiles that say what it shows.

``profile`` reads and checks the JSON profiles, ``migtable`` their MIG part, ``build`` compiles
``library/*.c`` on first use, and ``node`` makes what surrounds NVML on a real node: sysfs, the part
of /proc that lists MIG capabilities, a boot id, and character devices.
"""

from pathlib import Path


def list_shipped_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, sorted."""
    return tuple(sorted(file.stem for file in (Path(__file__).parent / "profiles").glob("*.json")))
