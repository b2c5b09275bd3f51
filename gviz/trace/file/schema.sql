-- A gviz trace: everything a program said about its computation graph, in order. Format 7.
--
-- Open it with any SQLite client; nothing in it is ever executed. Numbers (of nodes, storages, ops, stacks, scopes and
-- passes) count from 1 within a trace, 0 means "none". A body is MessagePack: an array of the event's fields, in the
-- order in which the table `kind` names them. Nested in bodies:
--   value   [dtype, shape, data, stats, blob]: one array as it was; little-endian elements in C order are in `data`
--           when small; else `stats` is [min, max, mean, rms, nan, inf, zero], and `blob`, if the elements were kept,
--           is a row of 16-byte hashes of chunks that hold them together
--   output  [value, storage, version, view_of, offset, strides]
--   edge    [node, output_nr]
--   frame   [path, function, line, end_line, column, end_column]
--
-- History of the format (PRAGMA user_version), and what changed in it:
--   1  the first
--   2  the file may keep only the last part of a run (a file that keeps all of it had format 1). Its first event then
--      has a higher number than 1, and the table `meta` a row `said_again`: so many of the first events say again what
--      was there when the part began, in the place of all that was dropped. A row `turns` (JSON) lists the call stacks
--      from which the passes of one iteration were begun, for each loop of several, as far as the whole run had shown
--   3  the start of an optimizer's step is an event of its own, OptimizerStarted; before, only its end was said
--   4  of a call that gives several tensors it is said which part each is, Returned; before, none of them had a name
--   5  that a tensor was given other memory is an event of its own, DataSet; before, it was said as a write to the old
--   6  a call stack may share its outermost frames with an earlier one: StackSeen has `base`, the number of that stack, and
--      `shared`, how many frames; `frames` are the others. Before, each stack had all of its frames
--   7  what a variable of the program holds is an event, VariableHeld, where its name alone would be taken for another
--      object

CREATE TABLE meta (     -- what is known about the recording as a whole
    key TEXT PRIMARY KEY,   -- gviz, framework, python, argv (JSON), process (its number), started,
                            -- finished (absent if the program was killed)
    value TEXT NOT NULL     -- as text; times are ISO 8601 in UTC
);

CREATE TABLE kind (     -- the classes of events, so that a trace explains itself
    kind INTEGER PRIMARY KEY,   -- the number used below
    name TEXT NOT NULL,         -- the class, as in gviz/events/, which documents it
    fields TEXT NOT NULL        -- the names of what a body holds, in order, separated by blanks
);

CREATE TABLE definition (   -- events that only introduce a number: OpSeen, StackSeen, SourceSeen
    id INTEGER PRIMARY KEY,     -- the order in which they were said, from 1
    kind INTEGER NOT NULL,      -- its class
    body BLOB NOT NULL          -- its fields, the introduced number or path first
);

CREATE TABLE batch (    -- what happened, in order: the events that reached the file together
    first INTEGER PRIMARY KEY,  -- the number of the first of them; events count from 1, without gaps
    last INTEGER NOT NULL,      -- the number of the last
    events TEXT NOT NULL,       -- JSON, an array an event: its fields in the view below, from kind to thread, then
                                -- where its body starts in `bodies` (counted from 0) and how many bytes it has
    bodies BLOB NOT NULL        -- the bodies, one after the other
);

CREATE VIEW event AS    -- what happened, a row an event, for whoever asks in SQL; gviz itself never reads a view
SELECT
    first + key AS seq,                         -- the event's number
    json_extract(value, '$[0]') AS kind,        -- its class
    json_extract(value, '$[1]') AS node,        -- the node it concerns (for the start of a pass: the first root)
    json_extract(value, '$[2]') AS output_nr,   -- the output of that node it concerns, from 0
    json_extract(value, '$[3]') AS pass_nr,     -- the backward pass it belongs to
    json_extract(value, '$[4]') AS time,        -- nanoseconds since the recording started
    json_extract(value, '$[5]') AS thread,      -- which thread of the program said it, from 1 in order of appearance
    substr(bodies, json_extract(value, '$[6]') + 1, json_extract(value, '$[7]')) AS body -- its fields
FROM batch, json_each(events);

CREATE TABLE chunk (    -- elements of large arrays, each piece once, however often it occurred
    hash BLOB PRIMARY KEY,      -- BLAKE2b of the bytes, 16 bytes long
    bytes BLOB NOT NULL         -- at most 1 MiB; only the last piece of an array is shorter
);

CREATE TABLE index_column ( -- columns for fast seeking, written at a clean close; can be rebuilt from the events
    name TEXT PRIMARY KEY,      -- as in gviz/trace/index/columns.py
    dtype TEXT NOT NULL,        -- of numpy: |u1, <u2, <u4 or <u8
    bytes BLOB NOT NULL         -- the elements
);
