"""A report in, a string out."""
