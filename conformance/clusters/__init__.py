"""Where a cluster comes from: an existing kubeconfig, kind, or our own processes on this machine.

Every source answers with one `ClusterAccess` value (see base.py), so that the cluster target above
does not know which of them it runs against.
"""
