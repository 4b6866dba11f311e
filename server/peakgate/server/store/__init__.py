"""What the service keeps: predictions, observed peaks, the calibration. Rows exist only in this package."""
