"""What runs by itself: the scheduler."""
