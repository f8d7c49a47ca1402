"""Our kinds as typed views over plain JSON objects, and everything one can say of them alone.

No I/O here: callers read files and clocks.
"""
