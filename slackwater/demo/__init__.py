"""A small TPC-H warehouse under a stream of changes, for the demo and for tests."""
