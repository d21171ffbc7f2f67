"""Machine code of NVIDIA kernels: parsed, counted, compared. The disassembler's text comes in as a value."""
