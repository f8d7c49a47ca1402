"""``python -m vcjob`` is the ``vcjob`` command."""

from vcjob.cli.entry import vcjob

vcjob()
