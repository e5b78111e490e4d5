"""Uncommitted garbage."""
