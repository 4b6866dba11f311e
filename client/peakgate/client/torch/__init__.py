"""Inside a training: what it needs is predicted before step 0, and the allocator's peaks go to the agent of the node.

No gRPC, no protobuf and no thread in the training's process; torch and the frameworks are the training's own.
"""
