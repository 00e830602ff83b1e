"""From the tile tree to the ops that mirror COMET files, and back."""
