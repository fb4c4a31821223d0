"""The suite's plugin comes with the package (entry point ``pytest11``); nothing else is needed."""

import sys

# Where the environment forbids bytecode, each worker and each program that a test starts would
# compile some thousand modules anew: half of the time of collecting.
sys.dont_write_bytecode = False
