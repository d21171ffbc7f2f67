"""Nsight Systems: who ran what when, and how much of the communication was hidden."""
