"""Repositories of Icechunk, as the engine's third kind.

    format/       how files are read; it knows no repository
      ids           twelve random bytes, and the twenty letters that name a file
      container     what is around the contents of a file: its kind, its version, how it is compressed
      buffer        a flatbuffer, one value at a time; strides has many at once
      values        metadata as msgpack or a flexbuffer has them
      states        snapshot files: a parent, a time, the manifests; nodes are its arrays by name
      manifest      references to chunks, by the column; locations are where virtual ones are
      transactions  whose change a log is about
      repo_info     the one file that has all refs and snapshots, of format 2
      refs          a file for each ref, of format 1
    layout        which keys are snapshots, manifests, logs, chunks, refs
    history       all refs and all that they reach, of either format
    core          one repository, and what is on record of it
    seen          its history with orders that people gave
    source        what holds chunks, and what is stored; held and gate are the moment of removal
    edits/        history made shorter
      editor        edited_repo in one write, edited_files one by one; editing is what both ask
      forward       a flatbuffer in front of another; repo_writing, repo_change and operations write ``repo`` with it

Nothing here needs Icechunk's own library, whose API does not tell which chunks a manifest refers to.
"""
