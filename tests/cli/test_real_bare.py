"""A real local cluster on a machine that has only what README names: Python and a base system."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from nvml_driver.simulated import build
from nvml_driver.simulated.build import default_cache_root
from tests.localkube import local_support as support
from tests.programs import ended

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]

BASE_SYSTEM = ("env", "mount", "nsenter", "sleep", "umount", "unshare")
"""What coreutils and util-linux give the cluster; pods' own commands are in their image."""

DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def test_a_scenario_runs_where_no_program_but_the_base_systems_is_to_be_found(
    tmp_path: Path,
) -> None:
    """Every directory of programs is hidden, for the cluster's processes too."""
    support.require_node_machine()
    binaries = support.built_binaries()
    build.build_library(default_cache_root())
    hidden = sorted({Path(one).resolve() for one in DIRECTORIES if Path(one).is_dir()})
    programs = tmp_path / "programs"
    programs.mkdir()
    commands = ["set -e"]
    for number, place in enumerate(hidden):
        kept = tmp_path / str(number)
        kept.mkdir()
        commands.append(f"mount --bind {place} {kept}")
        python = [path.name for path in place.glob("python3*")]
        # `cc` does not run: its path is part of the name under which the library is cached.
        for name in (*BASE_SYSTEM, *python, "cc"):
            program = (place / name).resolve()
            if program.is_file() and program.is_relative_to(place):
                (programs / name).symlink_to(kept / program.relative_to(place))
    mount = (programs / "mount").readlink()
    commands += [f"{mount} --bind {programs} {place}" for place in hidden]
    with support.short_directory() as state:
        run = [
            *(sys.executable, "-m", "conformance", "run", "--target", "cluster"),
            *("--cluster", "local", "--name", "bare", "--binaries", str(binaries)),
            *("--nodes", "1", "-k", "core/generated-claim-containers-share-device", "--compare"),
        ]
        commands.append(f"exec {shlex.join(run)}")
        done = ended(
            ["unshare", "--mount", "sh", "-c", "\n".join(commands)],
            env={
                "PATH": f"{Path(build.find_compiler()[0]).parent}:/usr/bin:/usr/sbin:/bin:/sbin",
                "HOME": os.environ.get("HOME", "/root"),
                "XDG_STATE_HOME": str(state),
            },
            cwd=tmp_path,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
