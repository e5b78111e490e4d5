"""How an Icechunk repository's files are read: bytes in, values and columns out; what is not understood is refused."""
