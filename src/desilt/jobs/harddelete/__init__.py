"""Hard delete: what was never committed, and what nothing points to any more, removed by workers."""
