"""The client configuration of the ssh plugin: how pods of a job reach each other by ssh.

First come the lines that Volcano writes (plugins.md section 5): a block a host, by short name.
Pods mount the file in a way that never changes it (``subPath``), so what follows holds for hosts
that come later, too; for names with their domain, which need the port as well; and while a host
is not there yet, because programs such as mpirun give up after one try.
"""

from collections.abc import Iterator

from vcjob.plugins.hosts import JobHosts, TaskHosts

PATTERNS_BEGIN = "# Hosts that come later, full names, and waiting until a host is there."
MOST_BYTES = 768 * 1024
"""How much of the 1 MiB that a Secret may hold the configuration takes at most."""
WAIT_SECONDS = 60
"""How long a host may take to get its name, and then to start its server."""

_FRAME_BYTES = len("Host \n  HostName \n  Port 65535\n")
# ssh runs this in the user's shell while it reads the file; it goes on in any case.
_UNTIL_IT_RESOLVES = (
    "sh -c 'command -v getent || exit; n=0; until getent hosts %h || [ $n = "
    f"{WAIT_SECONDS} ]; do n=$((n+1)); sleep 1; done'"
)


def client_config(hosts: JobHosts, port: int) -> str:
    """The text of ``config``; all hosts are left to patterns when listing them takes too much."""
    patterns = "".join(f"{line}\n" for line in (PATTERNS_BEGIN, *_patterns(hosts, port)))
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    if listed_bytes(hosts) + len(patterns) <= MOST_BYTES:
        for task in hosts:
            for index in range(task.count):
                lines += (
                    f"Host {task.hostname(index)}",
                    f"  HostName {task.address(index)}",
                    f"  Port {port}",
                )
    return "\n".join(lines) + "\n" + patterns


def listed_bytes(hosts: JobHosts) -> int:
    """At most how many bytes the listed hosts take, without making them."""
    return sum(2 * task.list_bytes + task.count * _FRAME_BYTES for task in hosts)


def _patterns(hosts: JobHosts, port: int) -> Iterator[str]:
    # A task's name may begin with another's: the longer pattern says more. A block a task keeps
    # lines short: older clients read at most 1,024 bytes of one.
    for task in sorted(hosts, key=lambda task: len(_pattern(task)), reverse=True):
        pattern = _pattern(task)
        names = [pattern, f"{pattern}.*"] if task.fixed_hostname else [pattern]
        if not task.fixed_hostname:
            yield f"Host {pattern} !*.*"
            yield f"  HostName %h.{task.subdomain}"
        yield f"Host {' '.join(names)}"
        yield f"  Port {port}"
        yield f"  ConnectionAttempts {WAIT_SECONDS}"
        yield f'Match originalhost {",".join(names)} exec "{_UNTIL_IT_RESOLVES}"'


def _pattern(task: TaskHosts) -> str:
    """The short name of the task's hosts; without ``fixed_hostname`` any longer form, too."""
    return task.fixed_hostname or f"{task.hostname(0).removesuffix('0')}*"
