"""Why an object is kept, or by what it went."""
