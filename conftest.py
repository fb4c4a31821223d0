"""The suite's plugin comes with the package (entry point ``pytest11``); nothing else is needed."""
