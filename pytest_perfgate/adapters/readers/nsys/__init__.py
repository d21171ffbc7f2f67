"""Nsight Systems exports, read with the standard library's SQLite and never written."""
