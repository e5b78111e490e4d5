"""Columns in, columns out: what jobs decide, over as many objects as there are. No reads, no writes."""
