"""``python -m nvml_driver`` is ``nvml-dra-driver``."""

from nvml_driver.cli import main

main()
