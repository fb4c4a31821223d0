"""A real DRA driver for NVIDIA GPUs, or for GPUs that a simulated NVML shows.

Its folders, from the device up; each imports only those above it:

- ``simulated``: a C library that stands in for NVML, and the machines that it can show.
- ``model``: plain values that all parts share: devices, what is prepared, the node's files.
- ``nvml``: asking NVML, and what the kernel shows beside it.
- ``mig``: MIG devices that exist, that could be made, that are made for claims.
- ``devices``: all devices of a node, and the ResourceSlices that publish them.
- ``config``, ``cdi``: opaque configuration; the CDI specs that bring devices into containers.
- ``prepare``: a claim made ready and taken back, remembered across crashes and reboots.
- ``health``: what is wrong with which GPU, reported to the kubelet and in slices.
- ``cluster``, ``kubelet``: the two sides it serves: API server and gRPC.

``core`` is prepare and unprepare, the same in-process (the suite's reference target) and behind
the kubelet's sockets; ``running`` puts all of it together and ``cli`` starts it.
``storage.faults`` names the points at which the crash tests kill it.
"""
