"""What several passes read from IR: pure functions, nothing is changed."""
