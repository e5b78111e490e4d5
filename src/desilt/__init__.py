"""Retention, lifecycle, expiration and garbage collection for versioned data lakes."""
