"""The state of a cluster: its pools, what each node can use of them, and what is in use."""
