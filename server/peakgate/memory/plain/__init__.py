"""Plain networks (`model.operations`): shapes of each operation, the kernels it runs, and its walk on the tape."""
