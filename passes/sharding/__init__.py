"""From one device to many: shardings, and the collectives that they imply."""
