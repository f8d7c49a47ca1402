"""What a program inside a pod needs: who its peers are, which one it is, and waiting for them.

Uses only the standard library and the files and variables that the svc and env plugins provide,
so that it works wherever the Job runs (this file may be copied into an image). From Python::

    from vcjob import peers

    peers.wait_for_peers("ps", port=2222, timeout=60)
    workers = peers.hosts("worker")  # ["job-worker-0.job", "job-worker-1.job"]
    rank = peers.my_index()

From a shell::

    python -m vcjob.peers wait --task ps --port 2222 --timeout 60
    python -m vcjob.peers hosts --task worker --port 2222 --separator ,
    python -m vcjob.peers me
"""

import argparse
import os
import re
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

DIRECTORY = Path("/etc/volcano")
"""Where the svc plugin mounts the host lists."""

_SUFFIX = ".host"
_MOST_AT_ONCE = 32
_LONGEST_ATTEMPT = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class NoHosts(LookupError):
    """There is no host list: the svc plugin is not there, or no task is called so."""


class PeersNotReady(TimeoutError):
    """The time ran out before all peers were there. ``missing`` are their host names."""

    def __init__(self, missing: Sequence[str], timeout: float) -> None:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        super().__init__(f"{len(missing)} peers not there after {timeout:g} s: {shown}")
        self.missing = list(missing)


def tasks() -> list[str]:
    """The job's tasks that have a host list, by name, with ``_`` in place of ``-``."""
    if DIRECTORY.is_dir():
        found = [path.name.removesuffix(_SUFFIX) for path in DIRECTORY.glob(f"*{_SUFFIX}")]
        if found:
            return sorted(found)
    named = (re.fullmatch(r"VC_(.*)_HOSTS", name) for name in os.environ)
    return sorted(match[1].lower() for match in named if match)


def hosts(task: str) -> list[str]:
    """The host names of a task's pods, by index, from the file (which follows changes of scale).

    Where the file is not mounted, the variable ``VC_<TASK>_HOSTS`` is used. Raises NoHosts.
    """
    key = task.replace("-", "_")
    try:
        return (DIRECTORY / f"{key}{_SUFFIX}").read_text().split()
    except FileNotFoundError:
        pass
    text = os.environ.get(f"VC_{key.upper()}_HOSTS")
    if text is None:
        known = ", ".join(tasks())
        raise NoHosts(
            f'no host list of a task "{task}"; '
            + (f"there are: {known}" if known else "does the job have the plugin svc?")
        )
    return [host for host in text.split(",") if host]


def my_index() -> int:
    """The index of this pod within its task.

    It is ``VC_TASK_INDEX`` (plugin env), else the number at the end of the host name. Raises
    LookupError if there is neither.
    """
    text = os.environ.get("VC_TASK_INDEX", "") or _hostname().rpartition("-")[2]
    if not text.isdecimal():
        raise LookupError("the index of this pod is not known; does the job have the plugin env?")
    return int(text)


def my_host() -> str:
    """The full host name of this pod, as host lists show it; raises NoHosts if none does."""
    if host := os.environ.get("VC_CURRENT_HOST"):
        return host
    return _me()[1]


def my_task() -> str:
    """The task of this pod, with ``_`` in place of ``-``; raises NoHosts if no list shows it."""
    return _me()[0]


def wait_for_peers(
    task: str | Iterable[str] | None = None,
    port: int | None = None,
    timeout: float = 60.0,
) -> list[str]:
    """Wait until all pods of a task (of several; of all) are there, and return their host names.

    A peer is there when its name resolves, with ``port`` when it accepts a TCP connection on it.
    This pod itself is not waited for. ``timeout`` is in seconds; a name server that does not
    answer may add a few. Raises PeersNotReady, and NoHosts for a task that does not exist.
    """
    wanted = [task] if isinstance(task, str) else list(tasks() if task is None else task)
    deadline = time.monotonic() + timeout
    there: set[str] = set()
    pause = _FIRST_PAUSE
    own = (_hostname(), os.environ.get("VC_CURRENT_HOST"))
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        while True:
            peers = [host for name in wanted for host in hosts(name)]
            missing = [
                host
                for host in peers
                if host not in there and host.partition(".")[0] != own[0] and host != own[1]
            ]
            left = deadline - time.monotonic()
            attempt = max(min(left, _LONGEST_ATTEMPT), 0.01)
            answers = pool.map(partial(_is_there, port, attempt), missing)
            there.update(host for host, yes in zip(missing, answers, strict=True) if yes)
            missing = [host for host in missing if host not in there]
            if not missing:
                return peers
            if time.monotonic() + pause > deadline:
                raise PeersNotReady(missing, timeout)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _is_there(port: int | None, timeout: float, host: str) -> bool:
    try:
        if port is None:
            socket.getaddrinfo(host, None)
        else:
            socket.create_connection((host, port), timeout).close()
    except OSError:
        return False
    return True


def _hostname() -> str:
    return socket.gethostname().partition(".")[0]


def _me() -> tuple[str, str]:
    own = _hostname()
    for task in tasks():
        for host in hosts(task):
            if host.partition(".")[0] == own:
                return task, host
    raise NoHosts(f'no host list shows this pod, "{own}"')


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; exit code 0, or 1 if peers are not there in time or there are no hosts."""
    parser = argparse.ArgumentParser(prog="python -m vcjob.peers", description="Peers of this pod.")
    commands = parser.add_subparsers(dest="command", required=True)
    wait = commands.add_parser("wait", help="wait until peers are there")
    wait.add_argument("--task", action="append", help="task to wait for (default: all)")
    wait.add_argument("--port", type=int, help="wait until this TCP port accepts connections")
    wait.add_argument("--timeout", type=float, default=60.0, help="seconds (default: 60)")
    listed = commands.add_parser("hosts", help="print the host names of a task")
    listed.add_argument("--task", required=True)
    listed.add_argument("--port", type=int, help="append :PORT to each")
    listed.add_argument("--separator", default="\n", help="between hosts (default: newline)")
    commands.add_parser("me", help="print task, index and host name of this pod")
    options = parser.parse_args(arguments)
    try:
        if options.command == "wait":
            wait_for_peers(options.task, options.port, options.timeout)
        elif options.command == "hosts":
            suffix = f":{options.port}" if options.port else ""
            print(options.separator.join(host + suffix for host in hosts(options.task)))
        else:
            print(my_task(), my_index(), my_host())
    except (PeersNotReady, LookupError) as error:
        print(f"vcjob.peers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
