"""Where a ``vcjob`` process begins: Ctrl-C ends it without a traceback from the first moment.

Python answers an interrupt with an exception, which ``vcjob.cli.main`` turns into an exit code. But
its import takes longer than all that is here, and an exception there would be shown as a traceback.
Until it is imported the kernel ends the process, which shells report as the same exit code, 130.
"""

import signal
from typing import NoReturn


def vcjob() -> NoReturn:
    """The command ``vcjob``."""
    _start("vcjob")


def kubectl_vcjob() -> NoReturn:
    """The command ``kubectl-vcjob``, which kubectl runs as ``kubectl vcjob``."""
    _start("kubectl vcjob")


def _start(name: str) -> NoReturn:
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else whoever started us wants interrupts ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from vcjob.cli.main import main

    main(name, handler)
