"""Version v1 of the kubelet's PodResources API, as far as the agent reads it."""
