"""Peaks that other tools recorded, read for the calibration."""
