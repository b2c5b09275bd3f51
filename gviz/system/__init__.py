"""Services of the operating system and of Python: files, processes, memory, imports, reports.

* `files.py`: files written atomically, and folders only their owner can read
* `scratch.py`: temporary folders for one command
* `processes.py`: other processes of gviz, and ending a process together with its parent
* `gc_pause.py`: when the garbage collector runs
* `import_hook.py`: waits for a package to be imported
* `cooperative_work.py`: long work, done in small steps
* `notice.py`: a line on stderr, next to the program's own output
* `crash.py`: reports of bugs in gviz itself

They are independent of each other and import only `gviz.errors` and `gviz.values.plain_text`.
"""
