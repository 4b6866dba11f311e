"""Commands and scripts as a shell reads them, without running anything."""
