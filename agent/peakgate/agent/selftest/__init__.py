"""Asks the NVML of this node what the agent relies on: the checks that a simulation passes, on the real library."""
