"""What statements do, a file per kind of work; `warehouse.py` puts them together."""
