"""Where host lists go when they are big: environment, one ConfigMap, or one a task.

docs/compatibility.md row 9. Linux passes at most 128 KiB in one environment string (execve(2),
MAX_ARG_STRLEN); a ConfigMap holds at most 1 MiB (Kubernetes documentation, "ConfigMaps").
Sizes are computed without making the lists.
"""

import msgspec

from vcjob.api.names import count_variable, host_file_key, hosts_variable
from vcjob.plugins.hosts import JobHosts, TaskHosts

MOST_ENV_BYTES = 128 * 1024
MOST_LIST_BYTES = 1024 * 1024
# From here on pods declare every ConfigMap that growth of the job may ever need.
_PROJECTED_FROM = MOST_LIST_BYTES // 4


class HostListLayout(msgspec.Struct, frozen=True):
    """How the host lists of a job are kept.

    ``in_environment``: tasks whose list containers get as ``VC_<TASK>_HOSTS``. ``copies``: the
    ConfigMap holds these lists beside the host files. ``split``: each task's host file has a
    ConfigMap of its own. ``projected``: pods mount all of these as one directory. ``too_big``:
    tasks whose list fits nowhere.
    """

    in_environment: frozenset[str]
    copies: bool
    split: bool
    projected: bool
    too_big: frozenset[str]


def layout_of(hosts: JobHosts) -> HostListLayout:
    """Decide from the sizes of all lists."""
    too_big = frozenset(task.task for task in hosts if task.list_bytes > room_of(task.task))
    listed = [task for task in hosts if task.task not in too_big]
    once = sum(_file_bytes(task) for task in listed) + sum(
        len(count_variable(task.task)) + len(str(task.count)) for task in hosts
    )
    names = sum(len(hosts_variable(task.task)) for task in hosts)
    twice = once + names + sum(task.list_bytes for task in listed)
    copies = twice <= MOST_LIST_BYTES
    return HostListLayout(
        in_environment=frozenset(
            task.task for task in listed if copies and env_bytes(task) <= MOST_ENV_BYTES
        ),
        copies=copies,
        split=once + names > MOST_LIST_BYTES,
        projected=twice > _PROJECTED_FROM,
        too_big=too_big,
    )


def room_of(task: str) -> int:
    """How many bytes a task's host list may have in a ConfigMap of its own."""
    return MOST_LIST_BYTES - len(host_file_key(task))


def env_bytes(task: TaskHosts) -> int:
    """Bytes of the environment string ``VC_<TASK>_HOSTS=…``, with the zero byte that ends it."""
    return len(hosts_variable(task.task)) + 1 + task.list_bytes + 1


def _file_bytes(task: TaskHosts) -> int:
    return len(host_file_key(task.task)) + task.list_bytes
