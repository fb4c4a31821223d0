"""What kubelets know of DRA plugins: where they look for them, and what they accept."""

from __future__ import annotations

from typing import Final

KUBELET_ROOT: Final = "/var/lib/kubelet"
"""The kubelet's root for what runs on a node, where many drivers look for it."""

KNOWN_SERVICES: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""`servicesSupportedByKubelet` in pkg/kubelet/cm/dra/plugin/dra_plugin.go, in 1.34 to 1.37."""

PLUGIN_TYPE: Final = "DRAPlugin"

INFO_SECONDS: Final = 1.0
"""For GetInfo (pkg/kubelet/pluginmanager/operationexecutor, RegisterPlugin)."""
