"""The functions of the package `comet`: they return values, and print nothing."""
