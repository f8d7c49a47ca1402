"""The ``vcjob`` command: arguments, live output, exit codes."""
