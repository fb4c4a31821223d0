"""Create the objects that a scheduler ships in the folder of its Go module, such as its CRDs.

``python -m ci.schedulers.objects NAME MODULE FOLDER``; the cluster is that of KUBECONFIG.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kubernetes import client, config, utils

from ci.schedulers.certify import MODULES
from localkube.gocommand import find_go, make_environment


def main(name: str, module: str, folder: str) -> None:
    """Create all of a folder's objects; raises what the API server or ``go`` says."""
    where = subprocess.run(
        (find_go(), "list", "-m", "-f", "{{.Dir}}", module),
        cwd=MODULES / name,
        env=make_environment(),
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    ).stdout.strip()
    config.load_kube_config()  # of KUBECONFIG, which the local cluster has set
    with client.ApiClient() as api:
        for file in sorted((Path(where) / folder).glob("*.yaml")):
            utils.create_from_yaml(api, str(file))


if __name__ == "__main__":
    main(*sys.argv[1:])
