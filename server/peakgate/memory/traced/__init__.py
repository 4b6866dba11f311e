"""Profiles of real steps (`model.profile`): read, checked and turned into a prediction."""
