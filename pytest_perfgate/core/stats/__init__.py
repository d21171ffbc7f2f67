"""Statistics: exact where an exact rule exists; seeds are arguments."""
