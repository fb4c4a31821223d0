"""Writes the Container Device Interface specs that bring prepared devices into containers."""
