"""Entries against rules: what lifecycle and retention have in common."""
