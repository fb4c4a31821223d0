"""A real DRA driver for NVIDIA GPUs, or for GPUs that a simulated NVML shows.

Its parts, from the device up: ``simulated`` (a C library that stands in for NVML), ``library``
(which NVML this process uses), ``discovery`` (NVML to plain values), ``slices`` (values to
ResourceSlices), ``config`` (opaque configuration), ``cdi`` and ``checkpoint`` (what is on disk),
``core`` (prepare and unprepare), ``plugin`` (gRPC for the kubelet), ``kube`` (the API server) and
``cli``. The reference target uses ``core`` in-process; the kubelet reaches the same code by gRPC.
"""
