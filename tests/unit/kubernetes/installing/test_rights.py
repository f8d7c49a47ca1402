"""The table of rights against what the code asks for, in both directions, and against the docs."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from authorizing import Authorizer, AuthorizingCluster
from faults import Fault, Faulty
from replay import Replay
from simulation import ManualClock, Simulation

from vcjob.admission.certificates import CERTIFICATE, OwnCertificate
from vcjob.admission.configurations import webhook_configurations
from vcjob.admission.lookups import KINDS as LOOKED_UP
from vcjob.admission.lookups import Lookups
from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    MUTATING_WEBHOOK_CONFIGURATION,
    NETWORK_POLICY,
    QUEUE,
    SECRET,
    SERVICE,
    SUPPORTING,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes.installing.installation import (
    CERTIFICATE_SECRET,
    NAMESPACE,
    OPERATOR,
    WEBHOOK,
    Installation,
)
from vcjob.kubernetes.installing.rights import HEADINGS, RIGHTS, Feature, Right, row
from vcjob.kubernetes.installing.roles import roles
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

ROOT = Path(__file__).parents[4]
RECORDINGS = sorted((ROOT / "tests" / "reference" / "lifecycle").glob("*.json"))
OF_THE_CONTROLLER = frozenset(
    {
        Feature.JOBS,
        Feature.GANGS,
        Feature.PLUGINS,
        Feature.KEYS,
        Feature.VOLUMES,
        Feature.EVENTS,
        Feature.QUEUES,
        Feature.QUEUE_STATES,
    }
)
SECURITY = (ROOT / "docs" / "security.md").read_text()
OPTIONS = {"unwatched": (SECRET,)}
Need = tuple[str, str, str]
"""API group, resource and verb."""


def needs(rights: Iterable[Right]) -> set[Need]:
    """What there are rights for because it is asked for."""
    return {
        (one.kind.group, one.resource, verb)
        for one in rights
        for verb in one.verbs
        if verb not in one.unasked
    }


def operator_rights() -> Authorizer:
    return Authorizer(roles(Installation()), OPERATOR, NAMESPACE)


class ReplayWithRights(Replay):
    """A recording whose controller may do what the operator's roles allow."""

    controller_options = OPTIONS

    def __init__(self, recording: Object, authorizer: Authorizer) -> None:
        super().__init__(recording)
        self.authorizer = authorizer

    def _with_quota(self, store: Store) -> Cluster:
        return AuthorizingCluster(super()._with_quota(store), self.authorizer)


def job(**spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/a", "volumeClaim": claim}]
    plugins: Object = {"svc": [], "ssh": ["--ssh-public-key=alone"]}  # of which it warns
    whole = {"tasks": [task], "plugins": plugins, "volumes": volumes, **spec}
    return apply_defaults({"metadata": {"name": "j"}, "spec": whole})


FOREIGN = {CONFIG_MAP: "j-svc", SERVICE: "j", NETWORK_POLICY: "j", SECRET: "j-ssh"}
SPOILED: dict[Kind, Object] = {
    CONFIG_MAP: {"data": None},
    SERVICE: {"spec": {"selector": None}},
    NETWORK_POLICY: {"spec": {"ingress": None}},
    SECRET: {"data": {"config": None}},
}


async def life(s: Simulation) -> None:
    """A Job that others meddle with: whatever it has is in the way, changed, deleted, too many."""
    for kind, name in FOREIGN.items():
        metadata = {"name": name, "namespace": s.namespace}
        await s.store.create(kind, {"metadata": metadata, "spec": {"clusterIP": "None"}})
    await s.create_job(job(ttlSecondsAfterFinished=60))
    for kind, name in FOREIGN.items():
        await s.advance(3)
        await s.store.delete(kind, s.namespace, name)
        await s.advance(90)
    await s.admit()
    await s.advance(3)
    await s.run_pending()
    await s.advance(3)
    for kind, name in FOREIGN.items():
        await s.store.patch(kind, s.namespace, name, SPOILED[kind])
    await s.advance(3)
    await s.crash()
    await s.start()
    tasks = [{**(await s.job("j"))["spec"]["tasks"][0], "replicas": 3, "minAvailable": 3}]
    await s.patch_job("j", {"spec": {"minAvailable": 3, "tasks": tasks}})
    await s.advance(3)
    tasks = [{**tasks[0], "replicas": 2, "minAvailable": 2}]
    await s.patch_job("j", {"spec": {"minAvailable": 2, "tasks": tasks}})
    await s.advance(3)
    await s.patch_job("j", {"spec": {"plugins": {"svc": None, "ssh": None}}})
    await s.advance(3)
    await s.command("j", "AbortJob")
    await s.advance(3)
    await s.command("j", "ResumeJob")
    await s.advance(3)
    await s.admit()
    await s.advance(3)
    await s.run_pending()
    await s.advance(3)
    await s.end_running()
    await s.advance(3)
    await s.advance(120)
    for name in ("above", "below"):
        spec = {"parent": "above" if name == "below" else "root"}
        await s.store.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
    target = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": "above"}
    order = {"metadata": {"name": "o", "namespace": s.namespace}, "target": target}
    await s.store.create(COMMAND, {**order, "action": "CloseQueue"})
    await s.advance(3)


def asked_in_a_life(authorizer: Authorizer, fault: Fault | None = None, at: int = 0) -> int:
    """Live it once, with a fault at a write; how many writes there were."""
    faulty: list[Faulty] = []

    def wrap(store: Store) -> Cluster:
        faulty.append(Faulty(store))
        faulty[0].arm(fault, at)
        return AuthorizingCluster(faulty[0], authorizer)

    async def tell() -> None:
        simulation = Simulation(wrap=wrap, controller_options=OPTIONS)
        await simulation.start()
        try:
            await life(simulation)
        finally:
            await simulation.crash()

    asyncio.run(tell())
    return faulty[0].writes


def test_no_recording_asks_for_more_than_is_granted() -> None:
    authorizer = operator_rights()
    for path in RECORDINGS:
        replay = ReplayWithRights(json.loads(path.read_text()), authorizer)
        asyncio.run(asyncio.wait_for(replay.differences(), 30))
    assert len(RECORDINGS) > 30
    assert authorizer.refused == set()


@pytest.mark.timeout(300)
def test_rights_about_jobs_are_what_the_controller_asks_for() -> None:
    """In a life without faults and, as it looks again at what is not as it thought, with one."""
    authorizer = operator_rights()
    writes = asked_in_a_life(authorizer)
    for fault in (Fault.NOT_FOUND, Fault.ALREADY_EXISTS, Fault.CONFLICT):
        for at in range(writes):
            asked_in_a_life(authorizer, fault, at)
    assert authorizer.refused == set()
    asked = {(one.group, one.resource, one.verb) for one in authorizer.asked}
    assert asked == needs([right for right in RIGHTS if right.feature in OF_THE_CONTROLLER])


def test_rights_on_objects_of_plugins_are_for_the_kinds_that_plugins_name() -> None:
    registry = installed_plugins(third_party=False)
    named = {kind for name in registry.names() for kind in registry.find(name).kinds}
    of_plugins = (Feature.PLUGINS, Feature.KEYS)
    assert {right.kind for right in RIGHTS if right.feature in of_plugins} == named


def test_plugins_of_others_need_no_further_rights() -> None:
    of_plugins = (Feature.PLUGINS, Feature.KEYS)
    assert {right.kind for right in RIGHTS if right.feature in of_plugins} == set(SUPPORTING)


def test_a_verb_that_nobody_asks_for_has_a_reason() -> None:
    for right in RIGHTS:
        assert set(right.unasked) <= set(right.verbs)
        assert not right.unasked or right.why.startswith("Never asked for: ")


def test_secrets_are_never_listed() -> None:
    allowed = {verb for right in RIGHTS if right.kind == SECRET for verb in right.verbs}
    assert allowed.isdisjoint({"list", "watch", "*"})


@pytest.mark.parametrize("account", [OPERATOR, WEBHOOK])
def test_the_document_shows_the_table(account: str) -> None:
    rows = [HEADINGS, *(row(right) for right in RIGHTS if right.account == account)]
    lines = [f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in rows]
    table = "".join([lines[0], f"|{'---|' * len(HEADINGS)}\n", *lines[1:]])
    assert table in SECURITY, f"docs/security.md needs this table:\n{table}"


def test_rights_of_the_webhook_are_what_it_asks_for() -> None:
    authorizer = Authorizer(roles(Installation()), WEBHOOK, NAMESPACE)

    async def work() -> None:
        clock = ManualClock(1_800_000_000.0)
        store = Store(clock.now)
        kinds = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
        for kind, one in zip(kinds, webhook_configurations(NAMESPACE), strict=True):
            await store.create(kind, one)
        cluster = AuthorizingCluster(store, authorizer)
        readiness = Readiness((CERTIFICATE, *(kind.plural for kind in LOOKED_UP)))
        certificate = OwnCertificate(cluster, NAMESPACE, WEBHOOK, readiness, clock)
        await certificate.look()
        spoilt = {"data": {"tls.crt": None}}
        await store.patch(SECRET, NAMESPACE, CERTIFICATE_SECRET, spoilt)
        await certificate.look()
        following = asyncio.create_task(Lookups(cluster, readiness).follow())
        while len(authorizer.asked) < len(wanted):
            authorizer.more.clear()
            await authorizer.more.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    wanted = needs(right for right in RIGHTS if right.account == WEBHOOK)
    asyncio.run(asyncio.wait_for(work(), 30))
    assert authorizer.refused == set()
    assert {(one.group, one.resource, one.verb) for one in authorizer.asked} == wanted
