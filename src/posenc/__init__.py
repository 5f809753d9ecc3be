"""Positional encoding in NumPy, one concept a module."""
