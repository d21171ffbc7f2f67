"""Files, locks, commands, processes and git of this machine, for all families of adapters."""
