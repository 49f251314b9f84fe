"""Loops over the kernels, once per device."""
