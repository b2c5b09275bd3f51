"""The SQLite file that a trace is: how it is written while the program runs, kept within bounds, and read.

Read first, in this order:

1. `schema.sql` and `format.py`: the tables, and the marks by which a file is known to be a trace.
2. `writer.py`: the thread that alone touches the file, and what the threads of the program ask of it.
3. `reader.py`: the same events again, from a file that may still be written, or come from a stranger.

The walk of one event: the program appends it to a list (`TraceWriter.say`) and goes on. The writer's thread takes the
list 50 ms later. `bulk_statistics.py` replaces elements that nobody wants to keep, `event_table.py` encodes the event
into a row of a batch and large values into chunks, `ring.py` drops old batches of a bounded recording: the events of
`snapshot.py` take their place. At the close the index is added (`writer.finalize`). A reader opens the file read-only
(`connection.py`), finds the batch (`batch.py`), decodes the event and checks it against its row.

`paths.py` is about the files on disk (cache, replacing, the write-ahead log), `lock.py` about who writes one, and
`bounds.py` reads what a user wants to keep.
"""
