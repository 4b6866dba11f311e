"""What is known by name: GPUs with the memory that NVML reports, and published models with their dimensions."""
