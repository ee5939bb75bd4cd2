"""What changes: relations over time, and the laws by which their changes are computed."""
