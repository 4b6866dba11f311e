"""The node agent: watches the GPUs of a node and reports the highest memory of every job to the service."""
