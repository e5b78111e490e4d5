"""One file per job: what it marks, on one screen."""
