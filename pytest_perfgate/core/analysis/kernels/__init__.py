"""Diagnosis of kernels: from facts to metrics, a class with its evidence, and advice."""
