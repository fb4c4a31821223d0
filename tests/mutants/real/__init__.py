"""Mutants for real: Kubernetes' own kube-scheduler, wrong as an environment variable says.

One program has all defects; without the variable it has none. See docs/decisions/0020.
"""
