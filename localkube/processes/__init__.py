"""Processes that outlive the program that starts them, as the kernel and the records show them."""
