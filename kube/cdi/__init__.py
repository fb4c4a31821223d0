"""The Container Device Interface (CDI), as a container runtime has it."""
