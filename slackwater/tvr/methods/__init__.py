"""Incremental methods that compute an expression from others than its own inputs."""
