"""Kinds of files that perfgate can look into: one inspector a file."""
