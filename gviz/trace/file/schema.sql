-- A gviz trace: the events of a program's computation graph, in order. Format 8.
--
-- Open it with any SQLite client. Nothing in it is ever executed. Numbers (of nodes, storages, ops, stacks, scopes and
-- passes) count from 1 within a trace, 0 means "none". A body is MessagePack: an array of the event's fields, in the
-- order of the names in table `kind`. Nested in bodies:
--   value   [dtype, shape, data, stats, blob]: one array as it was. `data` has little-endian elements in C order if the
--           array is small. Otherwise `stats` is [min, max, mean, rms, nan, inf, zero], and `blob`, if the elements
--           were kept, is a row of 16-byte hashes of the chunks that hold them
--   output  [value, storage, version, view_of, offset, strides]
--   edge    [node, output_nr]
--   frame   [path, function, line, end_line, column, end_column]
--
-- History of the format (PRAGMA user_version):
--   1  the first version
--   2  the file may keep only the last part of a run (a complete file still had format 1). The number of its first
--      event is then greater than 1. The row `said_again` of table `meta` is the number of first events that recreate
--      the state at the start of the part, in place of all that was dropped. A row `turns` (JSON) lists the call stacks
--      that started the passes of one iteration, for each loop with several passes per iteration that the run had shown
--   3  the start of an optimizer step has its own event, OptimizerStarted (before: only the end was recorded)
--   4  for a call that returns several tensors, Returned tells which part each is (before: none of them had a name)
--   5  giving a tensor other memory has its own event, DataSet (before: recorded as a write to the old memory)
--   6  a call stack may share its outermost frames with an earlier one: StackSeen has `base`, the number of that stack,
--      and `shared`, the number of frames. `frames` are the others (before: each stack had all of its frames)
--   7  VariableHeld records what a variable of the program holds, if its name alone would identify another object
--   8  events may be missing between others, too: table `batch` then has gaps, and the row `gaps` of table `meta` (JSON)
--      has for each the number of the first event after it, and how many events before that one repeat what followed
--      from the missing ones (before: only events at the beginning could be missing)

CREATE TABLE meta (     -- facts about the recording as a whole
    key TEXT PRIMARY KEY,   -- gviz, framework, python, argv (JSON), process (its number), started,
                            -- finished (absent if the program was killed)
    value TEXT NOT NULL     -- as text; times are ISO 8601 in UTC
);

CREATE TABLE kind (     -- the event classes, so that a trace describes itself
    kind INTEGER PRIMARY KEY,   -- the number used below
    name TEXT NOT NULL,         -- the class in gviz/events/, where it is documented
    fields TEXT NOT NULL        -- the names of the fields in a body, in order, separated by blanks
);

CREATE TABLE definition (   -- events that only define a number: OpSeen, StackSeen, SourceSeen
    id INTEGER PRIMARY KEY,     -- the order in which they were recorded, from 1
    kind INTEGER NOT NULL,      -- its class
    body BLOB NOT NULL          -- its fields, the defined number or path first
);

CREATE TABLE batch (    -- the events in order: a row has those that were written together
    first INTEGER PRIMARY KEY,  -- the number of the first of them; events count from 1; `gaps` in `meta` has gaps
    last INTEGER NOT NULL,      -- the number of the last
    events TEXT NOT NULL,       -- JSON, one array per event: its fields in the view below, from kind to thread,
                                -- the start of its body in `bodies` (from 0), and the size of its body in bytes
    bodies BLOB NOT NULL        -- the bodies, one after the other
);

CREATE VIEW event AS    -- one row per event, for queries in SQL. gviz itself never reads a view
SELECT
    first + key AS seq,                         -- the event's number
    json_extract(value, '$[0]') AS kind,        -- its class
    json_extract(value, '$[1]') AS node,        -- its node (for the start of a pass: the first root)
    json_extract(value, '$[2]') AS output_nr,   -- the output of that node, from 0
    json_extract(value, '$[3]') AS pass_nr,     -- the backward pass it belongs to
    json_extract(value, '$[4]') AS time,        -- nanoseconds since the recording started
    json_extract(value, '$[5]') AS thread,      -- the thread of the program, from 1 in order of appearance
    substr(bodies, json_extract(value, '$[6]') + 1, json_extract(value, '$[7]')) AS body -- its fields
FROM batch, json_each(events);

CREATE TABLE chunk (    -- elements of large arrays, each piece stored only once
    hash BLOB PRIMARY KEY,      -- BLAKE2b of the bytes, 16 bytes long
    bytes BLOB NOT NULL         -- at most 1 MiB; only the last piece of an array is shorter
);

CREATE TABLE index_column ( -- columns for fast seeking, written at a clean close; can be rebuilt from the events
    name TEXT PRIMARY KEY,      -- as in gviz/trace/index/search_index.py
    dtype TEXT NOT NULL,        -- numpy dtype: |u1, <u2, <u4 or <u8
    bytes BLOB NOT NULL         -- the elements
);
