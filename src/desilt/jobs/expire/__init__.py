"""History, made shorter."""
