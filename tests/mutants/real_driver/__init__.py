"""Our own driver with a deliberate defect, run for real beside a kubelet.

`python -m tests.mutants.real_driver FAULT run ...` is `nvml-dra-driver run ...` with that defect;
the driver itself knows nothing of it. `python -m tests.mutants.real_driver.measure` starts a local
cluster with it, meets every defect with scenarios and writes noticed.yaml.
"""
