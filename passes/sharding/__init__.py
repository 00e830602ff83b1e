"""From one device to many: shardings, and the collectives that follow from them."""
