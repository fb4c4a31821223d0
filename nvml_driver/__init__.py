"""A real DRA driver for NVIDIA GPUs, or for GPUs that a simulated NVML shows.

Its parts, from the device up: ``simulated`` (a C library that stands in for NVML), ``library``
(which NVML this process uses), ``discovery`` (NVML to plain values), ``slices`` (values to
ResourceSlices), ``config`` (opaque configuration), ``cdi`` and ``checkpoint`` (what is on disk),
``core`` (prepare and unprepare), ``partitions`` (MIG devices made for claims), ``recovery`` (after
a crash or reboot), ``rolling`` (two instances on one node), ``plugin`` (gRPC for the kubelet),
``resource_health`` and ``devicewatch`` (health, to the kubelet and into slices), ``collector``
(claims that are gone), ``kube`` (the API server), ``running`` (all of it together) and ``cli``.
``faults`` names the points at which the crash tests kill it. The reference target
uses ``core`` in-process; the kubelet reaches the same code by gRPC.
"""
