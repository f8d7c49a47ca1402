"""Host names of a job's pods, as every plugin lists them.

Source: plugins.md section 3. Host i of a task is ``<hostname>.<subdomain>``: the template's host
name, else the pod's name; the template's subdomain, else the job's name. A template with a host
name gives one host, however many replicas. Names are made when somebody asks for them: checks of
a job with a billion replicas must not make a billion names.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

from vcjob.api.names import pod_name
from vcjob.api.types import Job, Object, Task


def pod_spec(task: Task) -> Object:
    """The pod spec of a task's template, empty if there is none."""
    spec = task.template.get("spec")
    return spec if isinstance(spec, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class TaskHosts:
    """The hosts of one task. ``addresses`` are what lists show: names, or what stands for them."""

    def __init__(self, job: str, task: Task) -> None:
        spec = pod_spec(task)
        self.task = task.name
        self.replicas = max(task.replicas, 0)
        self.fixed_hostname = _text(spec.get("hostname"))
        self.subdomain = _text(spec.get("subdomain")) or job
        self._job = job
        self._substitutes: dict[int, str] = {}

    @property
    def count(self) -> int:
        """How many hosts the task has: its replicas, or one if the template names the host."""
        return min(self.replicas, 1) if self.fixed_hostname else self.replicas

    def hostname(self, index: int) -> str:
        """The host name of a replica, without subdomain."""
        return self.fixed_hostname or pod_name(self._job, self.task, index)

    def name(self, index: int) -> str:
        """``<hostname>.<subdomain>`` of a replica."""
        return f"{self.hostname(index)}.{self.subdomain}"

    def address(self, index: int) -> str:
        """What lists show for a replica: its name, or the address that stands for it."""
        return self._substitutes.get(0 if self.fixed_hostname else index) or self.name(index)

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of all hosts, made once."""
        return tuple(map(self.address, range(self.count)))

    @property
    def list_bytes(self) -> int:
        """How many bytes ``addresses`` joined by one byte each have, without making them."""
        count = self.count
        if self.fixed_hostname:
            return len(self.address(0)) if count else 0
        fixed = len(self.name(0)) - 1
        default = max(count * (fixed + 1) - 1, 0) + digits_below(count)
        return default + sum(
            len(address) - len(self.name(index)) for index, address in self._substitutes.items()
        )

    def hosts_within(self, room: int) -> int:
        """How many replicas the task may have so that the list has at most ``room`` bytes."""
        fixed = len(self.name(0)) - 1
        low, high = 0, room
        while low < high:
            middle = (low + high + 1) // 2
            if middle * (fixed + 1) - 1 + digits_below(middle) <= room:
                low = middle
            else:
                high = middle - 1
        return low

    def substitute(self, index: int, address: str) -> None:
        """Show ``address`` for a replica; only while the hosts of a job are being prepared."""
        if index < self.count:
            self._substitutes[index] = address


def digits_below(number: int) -> int:
    """How many digits 0, 1, …, number - 1 have together."""
    digits, first, width = 0, 0, 1
    while first < number:
        end = min(number, 10**width)
        digits += (end - first) * width
        first, width = end, width + 1
    return digits


class JobHosts:
    """The hosts of all tasks, in the order of ``spec.tasks``."""

    def __init__(self, job: Job) -> None:
        self.tasks = tuple(TaskHosts(job.metadata.name, task) for task in job.spec.tasks)

    def __iter__(self) -> Iterator[TaskHosts]:
        return iter(self.tasks)

    def find(self, task: str) -> TaskHosts | None:
        """The hosts of the task with this name, None if there is no such task."""
        return next((hosts for hosts in self.tasks if hosts.task == task), None)

    def substitute(self, addresses: Mapping[tuple[str, int], str]) -> None:
        """Let lists show other addresses for (task, index); unknown ones are left out."""
        for (task, index), address in addresses.items():
            if hosts := self.find(task):
                hosts.substitute(index, address)
