"""``vcjob operator`` on a cluster: whole processes, their Leases, their probes, their ends."""

import json
import random
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authorizing import Asked, Authorizer
from cli_runs import environment, run, task, write
from cli_runs import job as cli_job
from fake_kube_scheduler import add_node
from operators import OWN, QUICK, VOLCANO, Cluster, Operator, cluster, job, operators, phase

from vcjob.api.kinds import EVENT, JOB, LEASE, NAMESPACE, POD, QUEUE, SERVICE
from vcjob.api.types import Object
from vcjob.core.times import micro_timestamp
from vcjob.local.apiserver.status import Refused

VOLCANO_LEASE = "vc-controller-manager"
AS_VOLCANO = "--scheduler=volcano"  # which the cluster of these tests plays


def holder(lease: Object) -> str:
    return str(lease["spec"].get("holderIdentity", ""))


def running(obj: Object) -> bool:
    return phase(obj) == "Running"


def test_a_job_through_its_whole_life(there: Cluster, start: Callable[..., Operator]) -> None:
    operator = start(AS_VOLCANO, "--log-format=json")
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    assert there.get(POD, "mnist-worker-0")["spec"]["schedulerName"] == "volcano"
    assert there.get(SERVICE, "mnist")
    assert operator.ask("/healthz") == (200, "ok\n")
    code, text = operator.ask("/readyz")
    assert (code, text.splitlines()[0]) == (200, "ready: leads")
    assert "scheduler: Volcano's scheduler admits gangs: as --scheduler says" in text
    metrics = operator.ask("/metrics")[1]
    for sample in (
        "vcjob_leader 1.0",
        'vcjob_jobs{phase="Running"} 1.0',
        'vcjob_api_calls_total{code="201",resource="pods",verb="create"} 2.0',
        "vcjob_job_pods_created_seconds_count 1.0",
        "vcjob_job_pods_running_seconds_count 1.0",
    ):
        assert sample in metrics
    for index in range(2):
        there.do(there.face.end_pod(f"mnist-worker-{index}"))
    there.until(JOB, "mnist", lambda obj: phase(obj) == "Completed")
    assert operator.end() == 0
    logged = [json.loads(line) for line in operator.log]
    assert {"time", "level", "message", "logger"} <= logged[0].keys()
    assert sorted(there.made) == ["mnist-worker-0", "mnist-worker-1"]
    assert there.get(QUEUE, "default", "")["spec"]["parent"] == "root"


def test_an_annotation_that_widens_rights_works_only_where_it_is_allowed(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    start(AS_VOLCANO, "--allow-annotation=vcjob.dev/service-annotations")
    widening = {
        "vcjob.dev/service-labels": '{"a": "b"}',
        "vcjob.dev/service-annotations": '{"c": "d"}',
    }
    annotated = job("mnist")
    annotated["metadata"]["annotations"] = widening
    there.create(JOB, annotated)
    there.until(JOB, "mnist", running)
    metadata = there.get(SERVICE, "mnist")["metadata"]
    assert "a" not in metadata["labels"]
    assert metadata["annotations"]["c"] == "d"
    assert there.get(JOB, "mnist")["metadata"]["annotations"] == widening
    said = [event["message"] for event in there.do(there.store.list(EVENT)).items]
    assert [one for one in said if "vcjob.dev/service-labels has no effect" in one]


def test_a_standby_is_ready_says_who_leads_and_goes_on_at_once_after_a_graceful_end(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    usual = ("--leader-elect-retry-period=0.2s",)  # the others as usual: 15 s, 10 s
    first = start(AS_VOLCANO, *usual)
    first.says("this replica leads")
    leader = holder(there.get(LEASE, "vcjob-operator", OWN))
    second = start(AS_VOLCANO, *usual)
    second.says(f"this replica stands by; {leader} leads")
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    code, text = second.ask("/readyz")
    assert (code, text) == (200, f"ready: stands by; {leader} leads\n")
    assert first.end() == 0
    # Within the test's time only because the Lease was given back: it lasts 15 s.
    second.says("this replica leads")
    there.do(there.face.end_pod("mnist-worker-0"))
    there.do(there.face.end_pod("mnist-worker-1"))
    there.until(JOB, "mnist", lambda obj: phase(obj) == "Completed")
    assert len(there.made) == 2


def test_a_leader_that_stood_still_writes_nothing_when_it_goes_on(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    first = start(AS_VOLCANO, *QUICK, "--api-rate=50", "--api-burst=1")
    first.says("this replica leads")
    there.create(JOB, job("big", replicas=200))
    there.until(POD, "big-worker-20", lambda obj: True)
    first.process.send_signal(signal.SIGSTOP)
    second = start(AS_VOLCANO, *QUICK)
    second.says("probes and metrics at")  # what was on its way has arrived by now
    asked = len(there.made)
    second.says("this replica leads")
    there.until(JOB, "big", running)
    first.process.send_signal(signal.SIGCONT)
    first.says("could not be renewed in time: this process stood still for too long")
    creations = re.findall(
        r'vcjob_api_calls_total{code="\d+",resource="pods",verb="create"} (\d+)',
        first.ask("/metrics")[1],
    )
    assert sum(map(int, creations)) == asked
    assert len(there.made) == 200


def test_leaders_killed_at_random_moments_lose_nothing_and_do_nothing_twice(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    chance = random.Random(20261202)
    replicas = [start(AS_VOLCANO, *QUICK), start(AS_VOLCANO, *QUICK)]
    jobs = [f"job-{number}" for number in range(3)]
    for name in jobs:
        there.create(JOB, job(name, replicas=8))
        pod = f"{name}-worker-{chance.randrange(8)}"
        there.until(POD, pod, lambda obj: True)
        leader = holder(there.get(LEASE, "vcjob-operator", OWN))
        for replica in replicas:
            if f"_{replica.process.pid}_" in leader:
                replica.end(signal.SIGKILL)
                replicas[replicas.index(replica)] = start(AS_VOLCANO, *QUICK)
    for name in jobs:
        there.until(JOB, name, running)
        for index in range(8):
            there.until(
                POD, f"{name}-worker-{index}", lambda obj: bool(obj["spec"].get("nodeName"))
            )
            there.do(there.face.end_pod(f"{name}-worker-{index}"))
        there.until(JOB, name, lambda obj: phase(obj) == "Completed")
    assert sorted(there.made) == sorted(
        f"{name}-worker-{index}" for name in jobs for index in range(8)
    )


def test_an_api_server_that_goes_and_comes_back_is_waited_for(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    operator = start(AS_VOLCANO, *QUICK)
    operator.says("this replica leads")
    there.do(there.stop())
    operator.says("is lost: this replica waits for it again")
    code, text = operator.ask("/readyz")
    assert (code, text.splitlines()[0]) == (503, "not ready")
    assert "lease: the Lease vcjob-system/vcjob-operator cannot be had: nothing answers" in text
    there.do(there.start())
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    assert operator.process.poll() is None


def renew(there: Cluster, who: str, **more: Any) -> None:
    """Be Volcano's controller: renew its Lease."""
    there.lease(
        VOLCANO_LEASE, VOLCANO, holderIdentity=who, renewTime=micro_timestamp(random.random()),
        **{"leaseDurationSeconds": 1, **more},
    )  # fmt: skip


def test_while_volcano_s_controller_works_it_does_not_start(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    renew(there, "volcano-controllers-x", leaseDurationSeconds=600)
    operator = start(AS_VOLCANO)
    operator.says("volcano-controllers-x is named as holder")
    renew(there, "volcano-controllers-x", leaseDurationSeconds=600)
    assert operator.ended() == 1
    assert "--take-over" in operator.says("ERROR   Volcano's controller works on this cluster")


def test_volcano_s_controller_that_comes_later_gets_the_jobs_and_gives_them_back(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    operator = start(AS_VOLCANO)
    operator.says("the Queue default is made")
    renew(there, "volcano-controllers-x", leaseDurationSeconds=600)
    operator.says("nothing is decided any more")
    operator.says("volcano: Volcano's controller (volcano-controllers-x) holds the Lease")
    code, text = operator.ask("/readyz")
    assert code == 503
    assert "volcano-controllers-x) holds the Lease volcano-system/vc-controller-manager" in text
    renew(there, "")
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    assert operator.ask("/readyz")[0] == 200


def test_told_to_take_over_it_holds_volcano_s_lease_and_restarts_no_pod(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    renew(there, "volcano-controllers-x")
    operator = start(AS_VOLCANO, "--take-over")
    operator.says("over from volcano-controllers-x; waiting 1 s")
    taken = there.until(
        LEASE, VOLCANO_LEASE, lambda obj: holder(obj).startswith("vcjob-operator_"), VOLCANO
    )
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    there.until(
        LEASE, VOLCANO_LEASE,
        lambda obj: obj["spec"]["renewTime"] > taken["spec"]["renewTime"], VOLCANO,
    )  # fmt: skip
    assert operator.end() == 0
    # It runs out by itself: another replica of ours may follow.
    assert holder(there.get(LEASE, VOLCANO_LEASE, VOLCANO)) == holder(taken)


@pytest.mark.parametrize("more", [(), ("--namespaces=default",)], ids=["all", "one namespace"])
def test_without_volcano_s_scheduler_the_operator_admits_gangs_from_what_nodes_have(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    small, large = job("small"), job("large", 3)
    for one, cpu in ((small, "500m"), (large, "1")):
        requests = {"requests": {"cpu": cpu}}
        one["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = requests
    with cluster(tmp_path, volcano=False) as there, operators(there.config) as begin:
        there.do(add_node(there.store, "node", "2"))
        begin(*more).says("the operator admits gangs, for Kubernetes' own scheduler")
        there.create(JOB, large)
        there.create(JOB, small)
        there.until(JOB, "small", running)
        pod = there.get(POD, "small-worker-0")["spec"]
        assert (pod["schedulerName"], pod["nodeName"]) == ("default-scheduler", "node")
        assert not pod.get("schedulingGates")
        assert phase(there.get(JOB, "large")) == "Pending"
        assert not [name for name in there.made if name.startswith("large")]


def test_a_second_signal_ends_it_on_the_spot(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    operator = start(AS_VOLCANO)
    operator.says("the Queue default is made")
    there.do(there.stop())
    with socket.create_server(("127.0.0.1", there.port)):  # which never answers
        operator.process.send_signal(signal.SIGINT)
        operator.says("told to end (SIGINT)")
        assert operator.end(signal.SIGTERM) == 128 + signal.SIGTERM
    operator.says("ending on the spot")


def test_the_queue_that_vanishes_is_missed(there: Cluster, start: Callable[..., Operator]) -> None:
    operator = start(AS_VOLCANO)
    there.until(QUEUE, "default", lambda obj: True, "")
    there.create(JOB, job("mnist"))
    there.until(JOB, "mnist", running)
    there.do(there.store.delete(QUEUE, "", "default"))
    operator.says("queue: there is no Queue default")
    code, text = operator.ask("/readyz")
    assert code == 503
    assert "vcjob manifests --only queues | kubectl apply -f -" in text


class NoAnswerOfWebhook(Authorizer):
    """Lets everybody do everything, but nobody make Queues while ``fails`` is set."""

    def __init__(self) -> None:
        super().__init__((), "", "")
        self.fails = True

    def allows(self, asked: Asked) -> bool:
        if self.fails and (asked.verb, asked.resource) == ("create", "queues"):
            raise Refused(500, 'failed calling webhook "mutatequeue.vcjob.dev"')
        return True


def test_a_webhook_that_does_not_answer_keeps_nobody_from_deciding(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    there.create(QUEUE, {"metadata": {"name": "other"}, "spec": {"weight": 1}})
    there.api.authorizer = NoAnswerOfWebhook()
    operator = start(AS_VOLCANO)
    there.create(JOB, job("mnist", queue="other"))
    there.until(JOB, "mnist", running)
    operator.says("queue: there is no Queue default")
    code, text = operator.ask("/readyz")
    assert code == 503
    assert "(the operator cannot make it: " in text
    assert 'failed calling webhook "mutatequeue.vcjob.dev"' in text
    there.api.authorizer.fails = False
    there.until(QUEUE, "default", lambda obj: True, "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--context", "nowhere"), "context 'nowhere'"),
        (("--kubeconfig", "/nowhere/config"), "there is no kubeconfig file /nowhere/config"),
        (("--leader-elect-renew-deadline=20s",), "must be longer than the deadline"),
        (("--health-address=name:80",), "is not an address of this machine"),
        (("--namespaces=Big",), 'the name "Big" must'),
    ],
)
def test_wrong_options_are_said_in_a_sentence(
    there: Cluster, start: Callable[..., Operator], arguments: tuple[str, ...], sentence: str
) -> None:
    operator = start(*arguments)
    assert operator.ended() == 2
    operator.says(sentence)
    assert "Traceback" not in "\n".join(operator.log)


def test_a_namespace_for_the_lease_that_there_is_not_is_waited_for(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    operator = start(AS_VOLCANO, "--lease-namespace=nowhere", *QUICK)
    operator.says("lease: the Lease nowhere/vcjob-operator cannot be had")
    code, text = operator.ask("/readyz")
    assert code == 503
    assert "kubectl create namespace nowhere, or name another with --lease-namespace" in text
    there.create(NAMESPACE, {"metadata": {"name": "nowhere"}})
    operator.says("this replica leads")


@pytest.mark.local
def test_real_pods_on_an_engine_that_leaves_jobs_to_the_operator(tmp_path: Path) -> None:
    started = run(tmp_path, "engine", "start", "--detach", "--no-controller")
    assert started.code == 0, started
    config = Path(environment(tmp_path)["XDG_STATE_HOME"]) / "vcjob" / "engine" / "kubeconfig"
    try:
        with operators(config) as begin:
            begin("--lease-namespace=default").says("this replica leads")
            hello = cli_job("hello", task("worker", ["cat", "/etc/volcano/worker.host"], 2))
            ended = run(tmp_path, "submit", "--wait", "--timeout", "50s", write(tmp_path, hello))
            assert ended.code == 0, ended
            printed = run(tmp_path, "logs", "hello/worker-1").out
            assert printed.split() == ["hello-worker-0.hello", "hello-worker-1.hello"]
    finally:
        run(tmp_path, "engine", "stop", "--now")
