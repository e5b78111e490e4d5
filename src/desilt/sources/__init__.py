"""The read side of a repository: who holds what, and what the store lists, in files that every job compares."""
