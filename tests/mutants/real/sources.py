"""A copy of the Go packages that kube-scheduler is made of, changed as the mutants ask for.

Only the two modules that are changed are copied, and of them only what kube-scheduler imports; a
`replace` in a copy of the local cluster's go.mod puts them in. All else comes from the module
cache, whose files Go does not let anybody overlay.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from localkube.base import ClusterError
from localkube.gocommand import make_environment
from tests.mutants.real.change import Wrong, changed

PACKAGE = "k8s.io/kubernetes/cmd/kube-scheduler"
MODULES = {"kubernetes": "k8s.io/kubernetes", "dra": "k8s.io/dynamic-resource-allocation"}
"""Short name, which is also the folder's, and Go module."""

_QUESTION = Path(__file__).with_name("mutant.go.txt")


def write(go: str, modules: Path, folder: Path, wrongs: tuple[Wrong, ...]) -> Path:
    """Write the changed packages into `folder` and return the go.mod that uses them.

    Args:
        go: the go command.
        modules: the local cluster's Go modules (ci/local-cluster).
        folder: emptied first.

    Raises:
        LostAnchorError: Kubernetes has changed where a mutant wants to.
        ClusterError: the go command failed.
    """
    main = modules / "kubernetes"
    shutil.rmtree(folder, ignore_errors=True)
    for name, module in MODULES.items():
        _copy(go, main, module, folder / name)
    for file in sorted({change.file for wrong in wrongs for change in wrong.changes}):
        path = folder / file
        path.write_text(changed(file, path.read_text(), wrongs))
    names = "".join(f'\t"{wrong.name}": true,\n' for wrong in wrongs)
    question = folder / "dra/mutant/mutant.go"
    question.parent.mkdir()
    question.write_text(_QUESTION.read_text().replace("\t// NAMES\n", names))
    for file in ("go.mod", "go.sum"):
        shutil.copyfile(main / file, folder / file)
    replacing = [f"-replace={module}={folder / name}" for name, module in MODULES.items()]
    _output(main, go, "mod", "edit", *replacing, str(folder / "go.mod"))
    return folder / "go.mod"


def _copy(go: str, main: Path, module: str, target: Path) -> None:
    places = "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}\t{{.Dir}}"
    rows = [line.split("\t") for line in _output(main, go, "list", "-deps", "-f", places, PACKAGE)]
    ours = [(Path(row[1]), Path(row[2])) for row in rows if row[0] == module]
    if not ours:
        raise ClusterError(f"{PACKAGE} uses no package of {module}")
    for root, place in ours:
        inside = target / place.relative_to(root)
        inside.mkdir(parents=True, exist_ok=True)
        for file in place.iterdir():
            if file.is_file() and not file.name.endswith("_test.go"):
                shutil.copyfile(file, inside / file.name)
    shutil.copyfile(ours[0][0] / "go.mod", target / "go.mod")


def _output(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(
        command, cwd=folder, env=make_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command[:3])} failed: {done.stderr.strip()}")
    return done.stdout.splitlines()
