"""Reads a CUDA memory snapshot of a real run into a profile, as `peakgate trace` writes one. Needs no PyTorch."""
