"""Traces a training step of any PyTorch model on the meta device: every allocation as CUDA would make it, and no arithmetic."""
