"""What starts a training program: each launcher is peeled off with what it says."""
