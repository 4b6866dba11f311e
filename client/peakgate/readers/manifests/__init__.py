"""Kubernetes manifests: the containers that train, and what the manifest says of their GPUs and nodes."""
