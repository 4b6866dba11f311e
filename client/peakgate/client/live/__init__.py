"""Jobs read from the objects of a Python program that is about to train: no file, no import of PyTorch or transformers."""
