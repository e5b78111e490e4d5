"""Columns in, columns out: hashes, buckets, verdicts, and files of them."""
