"""The Slurm side: what a submission asks for, what is attached to it, what the gate answers, and how jobs are joined to predictions."""
