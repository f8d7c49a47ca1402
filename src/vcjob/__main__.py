"""``python -m vcjob`` is the ``vcjob`` command."""

from vcjob.cli.main import main

main()
