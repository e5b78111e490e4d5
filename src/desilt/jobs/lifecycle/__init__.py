"""Committed objects, by prefix, age and branch."""
