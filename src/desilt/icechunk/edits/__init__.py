"""How the history of an Icechunk repository is edited: what is decided again, and what is written."""
