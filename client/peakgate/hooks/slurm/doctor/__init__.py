"""What `peakgate slurm doctor` checks: the whole way from a submission to a verdict, each step with its remedy."""
