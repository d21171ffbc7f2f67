"""Kinds of files that can be inspected, one kind in each module."""
