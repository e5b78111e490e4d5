"""Repositories of Icechunk, as the engine's third kind; so far they are read, and no more.

    ids           twelve random bytes, and the twenty letters that name a file
    layout        which keys are snapshots, manifests, logs, chunks, refs
    container     what is around the contents of a file: its kind, its version, how it is compressed
    buffer        a flatbuffer, one value at a time; strides has many at once
    values        metadata as msgpack or a flexbuffer has them
    states        snapshot files: a parent, a time, the manifests
    manifest      references to chunks, by the column
    transactions  whose change a log is about
    repo_info     the one file that has all refs and snapshots, of format 2
    refs          a file for each ref, of format 1
    history       all refs and all that they reach, of either format
    core          one repository, and what is on record of it
    seen          its history with orders that people gave

Nothing here needs Icechunk's own library, whose API does not tell which chunks a manifest refers to.
"""
