"""What gviz asks of the operating system and of Python around a program: files, processes, memory, imports, reports.

* `files.py`: files written whole or not at all, and folders that only their owner can look into
* `scratch.py`: folders for the time of one command
* `processes.py`: other processes of gviz, and a process that ends with the one that started it
* `gc_pause.py`: when garbage is collected
* `import_hook.py`: waits for a package to be imported
* `cooperative.py`: long work, done a little at a time
* `notice.py`: a line on stderr, next to what the program prints
* `crash.py`: the report of a bug of gviz itself

Each is used alone; this room imports only `gviz.errors` and `gviz.values.plain_text`.
"""
