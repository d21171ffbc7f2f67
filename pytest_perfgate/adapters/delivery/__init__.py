"""Reports taken somewhere."""
