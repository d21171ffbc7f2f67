"""The pytest shell."""
