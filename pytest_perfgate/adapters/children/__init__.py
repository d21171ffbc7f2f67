"""The one child protocol."""
