"""The names that an expression may use: the declarations of one Kubernetes minor."""
