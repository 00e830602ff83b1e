"""The time and energy of collectives."""
