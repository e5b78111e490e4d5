"""The nouns and rules: stdlib only, no Spark, no SQL, no I/O, no clock."""
