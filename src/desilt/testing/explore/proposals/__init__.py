"""Five designs that a lake did not build: each as its document has it, step by step.

structured_paths      1  staged data lies in the object store, below its staging token
counters              2  a counter of references in each object's metadata
references            3  a key for each address and staging token, with a state
token_lists           4  a list of staging tokens for each address
locks                 5  no copies, and a lock on each staged entry
"""
