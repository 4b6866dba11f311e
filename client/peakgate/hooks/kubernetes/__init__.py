"""Gates of Kubernetes: which GPUs a workload gets, and the controllers that answer before it runs."""
