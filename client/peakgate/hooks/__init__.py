"""Gates of schedulers: thin clients of Predict."""
