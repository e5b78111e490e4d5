"""A lake whose database was restored from a copy, brought up to what its store knows."""
