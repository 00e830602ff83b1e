"""The PyTorch front end: graphs as programs, and a back end of `torch.compile`."""
