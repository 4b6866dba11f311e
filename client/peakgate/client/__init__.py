"""The Python client and the command `peakgate`."""
