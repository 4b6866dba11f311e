"""The Slurm side: what a submission asks for, what its cards hold, and who answers the controller."""
