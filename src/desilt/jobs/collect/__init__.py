"""What no ref reaches any more."""
