"""lakeFS's tables ⇄ Arrow, decoded and encoded by the column.

    reading   source → blocks → index, decode → table → columns (lanes)
    writing   columns → stretch (encode, cuts) → builder → writer
    both      varint, wire, values, hashing, slices

A table is a sorted, immutable file of keys and values, named by the hash of what
it holds. A *range* holds entries, a *metarange* the ranges of one commit.
"""
