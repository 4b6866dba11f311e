"""What `peakgate doctor` checks."""
