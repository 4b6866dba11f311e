"""Readers: the launch command and the config files of a job, as they are, into a job document.

`shell/` finds the command in a script, `launchers/` peels off what starts it, a format's reader (one file each, `registry.py` lists them)
says what its flags and files mean, and `reading.py` holds what was found with where it stands. Nothing is executed, and files are
opened through `files.py` alone, with the rights of the caller.
"""
