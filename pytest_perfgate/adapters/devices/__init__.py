"""The catalogue of devices, probes of this machine, and clocks."""
