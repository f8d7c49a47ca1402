"""Where a ``vcjob`` process begins: signals end it without a traceback from the first moment.

Python answers an interrupt with an exception, which ``vcjob.cli.main`` turns into an exit code. But
its import takes longer than all that is here, and an exception there would be shown as a traceback.
Until it is imported the kernel ends the process, which shells report as the same exit code, 130.

What runs on a cluster ends with 0 when it is told to, and must listen itself from the start: as the
first process of a container it is not ended by the kernel.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_STAYING = (["operator"], ["webhook"])


def vcjob() -> NoReturn:
    """The command ``vcjob``."""
    _start("vcjob")


def kubectl_vcjob() -> NoReturn:
    """The command ``kubectl-vcjob``, which kubectl runs as ``kubectl vcjob``."""
    _start("kubectl vcjob")


def _start(name: str) -> NoReturn:
    staying = sys.argv[1:2] in _STAYING
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else whoever started us wants interrupts ignored
        signal.signal(signal.SIGINT, _end if staying else signal.SIG_DFL)
        handler = _end if staying else handler
    if staying:
        signal.signal(signal.SIGTERM, _end)
    from vcjob.cli.main import main

    main(name, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Until the command listens nothing has begun that would have to be finished."""
    os._exit(0)
