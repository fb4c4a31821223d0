"""The scheduler: finds a node for each pod, and devices for its claims."""
