"""Work of an operation by family: FLOPs and bytes, numpy-free, shared by tests and trace analysis."""
