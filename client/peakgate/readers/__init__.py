"""Launch files that people already have, read into job documents."""
