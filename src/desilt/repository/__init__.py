"""A repository of any kind, as jobs see it."""
