"""What a call has to compute and move, by family of operators; ``pytest_perfgate.work`` has the public names."""
