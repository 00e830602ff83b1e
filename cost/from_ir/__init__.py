"""IR in, numbers out."""
