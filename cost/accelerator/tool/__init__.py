"""The COMET tool's model, number for number, defects included."""
