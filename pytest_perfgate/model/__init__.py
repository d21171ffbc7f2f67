"""What perfgate talks about: frozen values, the ports, the errors. Standard library only."""
