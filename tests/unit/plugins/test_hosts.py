import pytest

from vcjob.api.types import Task
from vcjob.plugins.hosts import TaskHosts, digits_below


def hosts(replicas: int, job: str = "j", **spec: str) -> TaskHosts:
    return TaskHosts(job, Task(name="gpu-worker", replicas=replicas, template={"spec": spec}))


@pytest.mark.parametrize(
    ("task", "addresses"),
    [
        (hosts(2), ("j-gpu-worker-0.j", "j-gpu-worker-1.j")),
        (hosts(0), ()),
        (hosts(2, subdomain="sub"), ("j-gpu-worker-0.sub", "j-gpu-worker-1.sub")),
        (hosts(3, hostname="h"), ("h.j",)),
        (hosts(0, hostname="h"), ()),
    ],
)
def test_addresses_follow_the_template(task: TaskHosts, addresses: tuple[str, ...]) -> None:
    assert task.addresses == addresses
    assert task.count == len(addresses)


def test_a_fixed_host_name_stands_for_every_replica() -> None:
    assert hosts(3, hostname="h").address(2) == "h.j"


def test_a_substitute_shows_in_the_list_only() -> None:
    task = hosts(2)
    task.substitute(1, "10.0.0.7")
    task.substitute(2, "10.0.0.8")
    assert task.addresses == ("j-gpu-worker-0.j", "10.0.0.7")
    assert task.name(1) == "j-gpu-worker-1.j"
    assert task.list_bytes == len("\n".join(task.addresses))


@pytest.mark.parametrize("replicas", [0, 1, 9, 10, 11, 99, 100, 101, 1234])
def test_the_size_of_a_list_is_known_without_making_it(replicas: int) -> None:
    task = hosts(replicas)
    assert task.list_bytes == len(",".join(task.addresses))
    assert digits_below(replicas) == sum(len(str(number)) for number in range(replicas))


@pytest.mark.parametrize("room", [16, 17, 1000, 1 << 20])
def test_as_many_hosts_as_fit_fit(room: int) -> None:
    most = hosts(1).hosts_within(room)
    assert hosts(most).list_bytes <= room < hosts(most + 1).list_bytes


def test_sizes_of_huge_tasks_cost_nothing() -> None:
    assert hosts(2**31 - 1).list_bytes > 2**35
