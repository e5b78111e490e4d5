"""Results as drawings and tables: what `benchmarks/draw.py` puts into `docs/performance.md`."""
