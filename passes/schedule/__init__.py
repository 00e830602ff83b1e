"""The tile tree: which ops share a nest, with which factors, at which level."""
