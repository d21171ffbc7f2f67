"""Nsight Systems: when each rank ran what, and how much communication was hidden."""
