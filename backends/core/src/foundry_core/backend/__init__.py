"""What a plugin derives its compiler and driver from."""
