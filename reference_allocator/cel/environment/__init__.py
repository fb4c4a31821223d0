"""What an expression may name: the declarations of one Kubernetes minor."""
