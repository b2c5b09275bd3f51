"""The SQLite file of a trace: writing it while the program runs, limiting its size, and reading it.

Where to start reading:

1. `schema.sql` and `format.py`: the tables, and how a file is recognized as a trace.
2. `writer.py`: the only thread that touches the file, and what the program's threads request from it.
3. `reader.py`: reads the events, also from a file that is still being written or is untrusted.

The path of one event: the program appends it to a list (`TraceWriter.record`) and continues. The writer's thread takes
the list 50 ms later. `bulk_statistics.py` replaces elements that need not be kept. `EventTable` encodes the event
into a row of a batch, and large values into chunks. `ring_buffer.py` drops old batches of a bounded recording and
replaces them with the events of `snapshot.py`. On close, `writer.finalize` adds the index. A reader opens the file
read-only (`connection.py`), finds the batch (`event_batches_and_gaps.py`), decodes the event and checks it against its
row.

`paths.py` manages the files on disk (cache, replacement, write-ahead log), `lock.py` ensures a single writer, and
`retention_policy.py` parses how much the user wants to keep.
"""
