"""What each policy would have done with a site's own past."""
