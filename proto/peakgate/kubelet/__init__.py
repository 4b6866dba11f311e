"""What the agent asks the kubelet: messages generated from the .proto file below."""
