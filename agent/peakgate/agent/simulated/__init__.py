"""A scripted libnvidia-ml.so.1, so that the agent runs on the real pynvml where there is no GPU."""
