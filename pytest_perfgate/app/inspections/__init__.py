"""Kinds of files that can be inspected, one file a kind."""
