"""Child processes: how they start, and the messages that they exchange with their parent."""
