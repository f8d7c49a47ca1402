"""The operator as a process whose every request is held against the roles that are installed."""

from collections.abc import Callable
from typing import Any

import pytest
from authorizing import Asked, Authorizer
from operators import OWN, VOLCANO, Cluster, Operator, job, phase

from vcjob.api.kinds import JOB, QUEUE
from vcjob.api.types import Object
from vcjob.core.queue_states import COUNTERS
from vcjob.kubernetes.installing.installation import OPERATOR, Installation
from vcjob.kubernetes.installing.rights import RIGHTS, Feature
from vcjob.kubernetes.installing.roles import roles
from vcjob.kubernetes.installing.workloads import operator_arguments

OF_A_CLUSTER = {Feature.DEFAULT_QUEUE, Feature.BUILTIN, Feature.ELECTION, Feature.BESIDE}


@pytest.fixture
def install(
    there: Cluster, start: Callable[..., Operator]
) -> Callable[[Installation], tuple[Operator, Authorizer]]:
    def run(installation: Installation) -> tuple[Operator, Authorizer]:
        authorizer = Authorizer(roles(installation), OPERATOR, OWN)
        there.api.authorizer = authorizer
        arguments = operator_arguments(installation)[1:]
        return start(*(one for one in arguments if "address" not in one)), authorizer

    return run


def is_completed(obj: Object) -> bool:
    return phase(obj) == "Completed"


def is_counted(queue: Object) -> bool:
    status = queue.get("status") or {}
    return any(status.get(counter) for counter in COUNTERS)


def live(there: Cluster, name: str, *, counted: bool = False) -> None:
    """A Job's whole life; ``counted``: it goes on until its Queue says that the Job is in it."""
    there.create(JOB, job(name))
    there.until(JOB, name, lambda obj: phase(obj) == "Running")
    if counted:
        there.until(QUEUE, "default", is_counted, "")
    for index in range(2):
        there.do(there.face.end_pod(f"{name}-worker-{index}"))
    there.until(JOB, name, is_completed)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scheduler": "builtin"},
        {"scheduler": "volcano", "beside_volcano": True},
        {"take_over": True},
        {"namespaces": ("default",)},
        {"namespaces": ("default", OWN)},
        {"namespaces": ("default",), "scheduler": "builtin"},
    ],
    ids=str,
)
def test_jobs_run_with_the_rights_of_the_installation(
    there: Cluster,
    install: Callable[[Installation], tuple[Operator, Authorizer]],
    options: dict[str, Any],
) -> None:
    if options.get("beside_volcano"):
        for name, spec in (("root", {}), ("default", {"parent": "root"})):
            there.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    operator, authorizer = install(Installation(**options))
    live(there, "mnist", counted=not options.get("namespaces"))
    assert operator.ask("/readyz")[0] == 200, operator.ask("/readyz")[1]
    assert operator.end() == 0
    assert authorizer.refused == set()


def test_rights_beside_those_about_jobs_are_used(
    there: Cluster, install: Callable[[Installation], tuple[Operator, Authorizer]]
) -> None:
    holds: set[Asked] = set()
    operator, plain = install(Installation())
    live(there, "one")
    operator.end()
    for name in ("two", "three"):  # makes the Lease of Volcano's controller, then finds it
        operator, holding = install(Installation(take_over=True))
        live(there, name)
        operator.end()
        holds |= holding.asked
    asked = {(one.group, one.resource, one.verb) for one in plain.asked | holds}
    for right in RIGHTS:
        if right.account == OPERATOR and right.feature in OF_A_CLUSTER | {Feature.TAKING_OVER}:
            for verb in set(right.verbs) - set(right.unasked):
                assert (right.kind.group, right.resource, verb) in asked
    held = {one.verb for one in holds if one.namespace == VOLCANO}
    assert held == {"get", "create", "patch"}


def test_without_rights_on_secrets_only_jobs_with_keys_wait(
    there: Cluster, install: Callable[[Installation], tuple[Operator, Authorizer]]
) -> None:
    operator, _ = install(Installation(secrets=False))
    there.create(JOB, job("keys", plugins={"svc": [], "ssh": []}))
    there.until(JOB, "keys", lambda obj: "secrets" in str(obj.get("status")))
    live(there, "mnist")
    code, text = operator.ask("/readyz")
    assert code == 200, text
    assert "Jobs with the plugin ssh wait" in text


@pytest.mark.parametrize("scheduler", ["volcano", "builtin"])
def test_a_namespace_that_is_closed_keeps_no_job_of_another_waiting(
    there: Cluster,
    install: Callable[[Installation], tuple[Operator, Authorizer]],
    scheduler: str,
) -> None:
    installation = Installation(namespaces=("default", OWN), scheduler=scheduler)
    operator, _ = install(installation)
    operator.says("this replica leads")
    objects = list(roles(installation))
    for closed in (True, False):
        open_to_us = [one for one in objects if not closed or not _is_of_jobs(one, OWN)]
        there.api.authorizer = Authorizer(open_to_us, OPERATOR, OWN)
        there.do(there.stop())  # as servers end watches after a while
        there.do(there.start())
        live(there, "closed" if closed else "open")
        if closed:
            text = operator.ask("/readyz")[1]
            assert f"namespace {OWN}: cannot " in text
            there.create(JOB, {**job("late"), "metadata": {"name": "late", "namespace": OWN}})
    there.until(JOB, "late", lambda obj: phase(obj) == "Running", OWN)


def _is_of_jobs(obj: Object, namespace: str) -> bool:
    """Whether it is the Role or RoleBinding for the Jobs of a namespace."""
    metadata = obj["metadata"]
    return metadata.get("namespace") == namespace and metadata["name"] == OPERATOR
