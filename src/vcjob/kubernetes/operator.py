"""What ``vcjob operator`` runs: the controller of Jobs, and all that lets it run on a cluster.

::

    requirements ─► Volcano's Lease ─► our Lease ─► [ Volcano gone ─► controller, gangs ]
     kinds, rights    (refuses)         (leads)        (again and again)

Whatever is missing is waited for and told by the readiness probe. Only what an administrator has to
decide (Volcano's controller is at work) ends it, where somebody started it by hand.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from vcjob.api.errors import first_of
from vcjob.api.kinds import PRIORITY_CLASS, SECRET, Kind
from vcjob.api.types import Job
from vcjob.controller.cluster import Cluster, ClusterError
from vcjob.controller.controller import Controller
from vcjob.controller.leading import Leader
from vcjob.controller.observers import Observers
from vcjob.controller.probes import serve_probes
from vcjob.controller.readiness import Readiness
from vcjob.core.scheduling.gating import GangScheduling, pod_adapter
from vcjob.kubernetes import standing
from vcjob.kubernetes.beside_volcano import Beside, StandingBack, TakingOver
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.connection import Connection
from vcjob.kubernetes.controllers import Controllers
from vcjob.kubernetes.credentials import Credentials
from vcjob.kubernetes.finishing import FinishingConnection
from vcjob.kubernetes.first_queues import FirstQueues
from vcjob.kubernetes.gang_scheduler import GangScheduler
from vcjob.kubernetes.installing.installation import OPERATOR
from vcjob.kubernetes.operating import OperatorCluster
from vcjob.kubernetes.operator_metrics import OperatorMetrics
from vcjob.kubernetes.operator_options import OperatorOptions
from vcjob.kubernetes.pacing import Limits
from vcjob.kubernetes.requirements import Requirements
from vcjob.kubernetes.scheduler_choice import SchedulerChoice, remake_all_waiting
from vcjob.kubernetes.scope import Scope
from vcjob.kubernetes.server import Server
from vcjob.plugins.registry import installed_plugins

_FINISH_SECONDS = 10.0
"""How long writes under way may take after we were told to end."""
_STATUS_SECONDS = 0.5
"""For each write of a Job's status; those that only inform wait."""
_LOOK_SECONDS = 2.0
_AGAIN_SECONDS = 2.0
_STUCK_SECONDS = 300.0

_log = logging.getLogger(__name__)


async def operate(
    server: Server,
    options: OperatorOptions,
    on_serving: Callable[[int], None] = lambda port: None,
) -> None:
    """Run an operator until cancelled; raises VolcanoRuns, AddressInUse.

    Args:
        server: the cluster's API server.
        options: what the administrator decided.
        on_serving: gets the port of probes and metrics, once they are answered.
    """
    metrics = OperatorMetrics()
    credentials = Credentials(server)
    plain = Connection(server, credentials, on_call=metrics.count_call)
    working = FinishingConnection(server, credentials)
    async with plain, working:
        operator = Operator(plain, working, options, metrics)
        async with serve_probes(
            options.health_address,
            operator.readiness,
            metrics.text,
            stuck=operator.stuck,
            refresh=operator.look,
        ) as port:
            on_serving(port)
            await operator.run()


class Operator:
    """One replica.

    Args:
        plain: the server, for looking around and for Leases.
        working: the server, for the work on Jobs.
        options: what the administrator decided.
        metrics: what is measured.
    """

    def __init__(
        self,
        plain: Connection,
        working: FinishingConnection,
        options: OperatorOptions,
        metrics: OperatorMetrics,
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._working = working
        self._cluster = KubernetesCluster(plain)
        self.readiness = Readiness(Condition, expected=(Condition.SERVER,))
        self.readiness.doing = "starting"
        self._requirements = Requirements(self._cluster, options, self.readiness)
        volcanos = options.volcano_namespace
        self._choice = SchedulerChoice(
            self._cluster, options.scheduler, self.readiness, namespace=volcanos
        )
        self._plugins = installed_plugins(third_party=options.third_party_plugins)
        identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
        self._leader = Leader(
            self._cluster, options.lease_namespace, OPERATOR, identity, terms=options.terms
        )
        self._beside: Beside
        if options.take_over:
            self._beside = TakingOver(self._cluster, self.readiness, identity, namespace=volcanos)
        else:
            self._beside = StandingBack(self._cluster, self.readiness, namespace=volcanos)
        self._controllers: Controllers | None = None
        self._gangs: GangScheduler | None = None
        self._queues = FirstQueues()
        self._sees_queues = False
        self._moved = 0.0
        working.on_call = self._called
        if options.leader_elect:
            working.may_write = lambda: self._leader.may_write
        metrics.watch_jobs(self._jobs, self._waiting, self._longest_wait)
        metrics.watch_queues(self._queue_counts)

    async def run(self) -> None:
        """Work until cancelled; raises VolcanoRuns."""
        await self._requirements.met()
        following = asyncio.create_task(self._requirements.follow())
        looking = asyncio.create_task(self._keep_looking())
        try:
            if isinstance(self._beside, StandingBack):
                waits = self._options.waits_for_volcano
                await (self._beside.clear() if waits else self._beside.refuse_to_start())
            if self._options.leader_elect:
                await self._leader.lead(self._work)
            else:
                await self._work()
        finally:
            for task in (following, looking):
                task.cancel()
            await asyncio.gather(following, looking, return_exceptions=True)

    async def _work(self) -> None:
        """Decide about Jobs whenever Volcano's controller does not, until cancelled."""
        self._metrics.leads.set(1)
        try:
            while True:
                await self._beside.clear()
                await _until(self._beside.taken(), self._decide_in_spite_of_failures())
                _log.warning("nothing is decided any more: Volcano's controller may be at work")
        finally:
            self._metrics.leads.set(0)
            if left := await self._working.finish(_FINISH_SECONDS):
                _log.warning("%d writes did not end in time", left)

    async def _decide_in_spite_of_failures(self) -> None:
        while True:
            try:
                await self._decide()
            except* ClusterError as failures:
                _log.error("starting anew: %s", first_of(failures))
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _decide(self) -> None:
        """Run the controller, and the scheduler of gangs where that is ours; until it is not."""
        chosen = await self._choice.choose()
        options = self._options
        builtin = chosen is GangScheduling.BUILTIN
        self._sees_queues = builtin or not options.installation.roles_only
        if not self._sees_queues:
            _log.warning(
                "what is in no namespace cannot be seen: every queue that a Job names is taken to "
                "exist, and PriorityClasses count for nothing"
            )
        limits = Limits(options.api_rate or None, options.api_burst, options.api_concurrency)
        everything = KubernetesCluster(self._working)
        scope = Scope(cluster_scoped=self._sees_queues)
        cluster = OperatorCluster(everything, scope, limits)
        places = {name: cluster.within(name or None) for name in options.namespaces or ("",)}
        self._controllers = Controllers(
            {name: self._controller(place, chosen) for name, place in places.items()}
        )
        self._gangs = None
        if builtin:  # what others' pods use counts, whatever namespaces we look after
            self._gangs = GangScheduler(
                cluster, cluster.with_all_pods(), places=list(places.values())
            )
        try:
            await _until(self._choice.changed(), self._decide_with(cluster, chosen))
        finally:
            self._controllers = self._gangs = None
            self._metrics.forget_jobs()
            self.look()

    def _controller(self, cluster: Cluster, chosen: GangScheduling) -> Controller:
        options = self._options
        return Controller(
            cluster,
            self._plugins,
            workers=options.workers,
            unwatched=(SECRET,) if self._sees_queues else (SECRET, PRIORITY_CLASS),
            adapt_pod=pod_adapter(chosen),
            status_interval=_STATUS_SECONDS,
            allowed_annotations=options.allowed_annotations,
            keep_queues=not options.namespaces,
            observers=Observers(
                passed=self._metrics.passes.observe,
                seen=self._metrics.note_job,
                forgotten=self._metrics.forget_job,
            ),
        )

    async def _decide_with(self, cluster: Cluster, chosen: GangScheduling) -> None:
        assert self._controllers is not None
        async with asyncio.TaskGroup() as tasks:
            if self._sees_queues:
                tasks.create_task(self._queues.make(cluster))
            tasks.create_task(self._controllers.run())
            if self._gangs is not None:
                tasks.create_task(self._gangs.run())
            whole = KubernetesCluster(self._working)
            tasks.create_task(remake_all_waiting(whole, chosen, self._options.namespaces))

    async def _keep_looking(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Bring what the readiness probe tells up to date."""
        leader, controllers, readiness = self._leader, self._controllers, self.readiness
        leads = leader.leads or not self._options.leader_elect
        doing = standing.doing(leads, leader.holder, controllers)
        if not leads and leader.holder and doing != readiness.doing:
            _log.info("this replica %s", doing)
        readiness.doing = doing
        lease = standing.lease_trouble(leader, self._options.lease_namespace)
        lacking = standing.cache_trouble(controllers, self._gangs)
        _tell(readiness, Condition.LEASE, lease)
        _tell(readiness, Condition.CACHES, lacking)
        if controllers and not lacking and self._sees_queues:
            missing = standing.queue_trouble(controllers, self._queues.trouble)
            _tell(readiness, Condition.QUEUE, missing)
        else:
            readiness.meet(Condition.QUEUE)

    def stuck(self) -> str:
        """What should go on and does not; an empty text if all is well."""
        now = asyncio.get_running_loop().time()
        if not self._waiting():
            self._moved = now
        if now - self._moved > _STUCK_SECONDS:
            return f"no Job was looked at for {now - self._moved:.0f} s, though some wait"
        return ""

    def _called(self, verb: str, kind: Kind | None, code: int, seconds: float) -> None:
        self._metrics.count_call(verb, kind, code, seconds)
        self._moved = asyncio.get_running_loop().time()

    def _jobs(self) -> Iterable[Job]:
        return self._controllers.jobs() if self._controllers else ()

    def _queue_counts(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        return self._controllers.queue_counts() if self._controllers else ()

    def _waiting(self) -> int:
        return self._controllers.waiting if self._controllers else 0

    def _longest_wait(self) -> float:
        return self._controllers.longest_wait if self._controllers else 0.0


def _tell(readiness: Readiness, condition: Condition, wrong: str) -> None:
    if wrong:
        readiness.fail(condition, wrong)
    else:
        readiness.meet(condition)


async def _until(stop: Coroutine[Any, Any, None], work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` until ``stop`` returns; raises what either raises."""
    tasks = [asyncio.create_task(stop), asyncio.create_task(work)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
