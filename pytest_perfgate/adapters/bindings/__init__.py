"""Thin wrappers of drivers and libraries, shared by families of adapters."""
