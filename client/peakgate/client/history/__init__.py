"""A site's past as a file: JSON Lines, one attempt of a job each."""
