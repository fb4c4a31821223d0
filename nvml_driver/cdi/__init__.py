"""Container Device Interface: the specs that bring prepared devices into containers."""
