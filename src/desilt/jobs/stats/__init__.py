"""How much there is, and since when."""
