"""Files, locks, commands, processes and git of this machine, once for all families of adapters."""
