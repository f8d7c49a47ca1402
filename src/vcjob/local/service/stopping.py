"""Ending the user's engine from another process."""

import os
import select
import signal
from pathlib import Path

from vcjob.local.service import kubeconfigs
from vcjob.local.service.home import EngineHome


def stop_engine(home: EngineHome, *, now: bool = False, timeout: float | None = None) -> bool:
    """End the engine and wait until it is gone; False if none was running.

    Pods get their grace periods unless ``now``. What a killed engine left in kubeconfig files is
    taken away too. Raises TimeoutError after ``timeout`` seconds; the engine then still ends.
    """
    pid = home.running()
    if not pid:
        _clear_after(home)
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False  # gone in this moment
    try:
        if home.running() == pid:  # so that the number has not become another's
            signal.pidfd_send_signal(process, signal.SIGQUIT if now else signal.SIGTERM)
        if not select.select([process], [], [], timeout)[0]:
            raise TimeoutError
    finally:
        os.close(process)
    return True


def _clear_after(home: EngineHome) -> None:
    record = home.read_record()
    if record is None:
        return
    if record.merged:
        kubeconfigs.unmerge(Path(record.merged))
    home.forget(Path(record.kubeconfig))
