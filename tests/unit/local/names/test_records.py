"""Which names Services and Pods have."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.local.names.records import Record, RecordKind, Zone

A, SRV, PTR = RecordKind.A, RecordKind.SRV, RecordKind.PTR
JOB = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}


def service(name: str = "j", selector: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    chosen = JOB if selector is None else selector
    return {"metadata": {"namespace": "ns", "name": name}, "spec": {"selector": chosen, **spec}}


def pod(index: int, *, ready: bool = True, phase: str = "Running", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": f"j-w-{index}", "labels": JOB, **more},
        "spec": {
            "hostname": f"j-w-{index}",
            "subdomain": "j",
            "containers": [{"ports": [{"name": "web", "containerPort": 8080}]}],
        },
        "status": {
            "phase": phase,
            "podIP": f"10.128.0.{index + 2}",
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


class World:
    """A zone and the records that its updates add up to."""

    def __init__(self) -> None:
        self.zone = Zone()
        self.records: set[Record] = set()
        self.services: set[str] = set()

    def take(self) -> set[Record]:
        update = self.zone.take_update()
        assert not set(update.removed) - self.records
        self.records -= set(update.removed)
        assert not set(update.added) & self.records
        self.records |= set(update.added)
        self.services -= set(update.services_removed)
        self.services |= set(update.services_added)
        return self.records


def addresses(records: set[Record], name: str) -> set[str]:
    return {r.value for r in records if r.name == name and r.kind is A}


def test_a_pod_of_a_headless_service_has_its_own_name_and_shares_the_services() -> None:
    world = World()
    world.zone.set_service(service())
    for index in (0, 1):
        world.zone.set_pod(pod(index))
    records = world.take()
    assert addresses(records, "j-w-1.j.ns.svc.cluster.local") == {"10.128.0.3"}
    assert addresses(records, "j.ns.svc.cluster.local") == {"10.128.0.2", "10.128.0.3"}
    assert Record("3.0.128.10.in-addr.arpa", PTR, "j-w-1.j.ns.svc.cluster.local") in records


def test_the_order_of_service_and_pods_does_not_matter() -> None:
    first, second = World(), World()
    first.zone.set_service(service())
    first.zone.set_pod(pod(0))
    second.zone.set_pod(pod(0))
    second.zone.set_service(service())
    assert first.take() == second.take() != set()


def test_a_pod_that_is_not_ready_has_no_name_unless_the_service_publishes_it() -> None:
    world = World()
    world.zone.set_service(service())
    world.zone.set_pod(pod(0, ready=False))
    assert world.take() == set()
    world.zone.set_service(service(publishNotReadyAddresses=True))
    assert addresses(world.take(), "j-w-0.j.ns.svc.cluster.local") == {"10.128.0.2"}


def test_names_go_when_a_pod_ends_or_is_being_deleted() -> None:
    world = World()
    world.zone.set_service(service())
    for gone in (pod(0, phase="Succeeded"), pod(0, deletionTimestamp="2026-01-01T00:00:00Z")):
        world.zone.set_pod(pod(0))
        assert world.take()
        world.zone.set_pod(gone)
        assert world.take() == set()


def test_named_ports_have_srv_records_with_the_pods_port() -> None:
    world = World()
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "ssh", "port": 22}]
    world.zone.set_service(service(ports=ports))
    world.zone.set_pod(pod(0))
    own = "j-w-0.j.ns.svc.cluster.local"
    found = {(r.name, r.value) for r in world.take() if r.kind is SRV}
    assert found == {
        ("_http._tcp.j.ns.svc.cluster.local", f"8080 {own}"),
        ("_ssh._tcp.j.ns.svc.cluster.local", f"22 {own}"),
    }


def test_a_service_exists_as_a_name_without_any_pod() -> None:
    world = World()
    world.zone.set_service(service())
    world.take()
    assert world.services == {"j.ns.svc.cluster.local"}
    world.zone.remove_service("ns", "j")
    world.take()
    assert world.services == set()


def test_a_service_selects_by_all_its_labels_and_one_without_selector_selects_nothing() -> None:
    world = World()
    world.zone.set_service(service("other", {**JOB, "more": "x"}))
    world.zone.set_service(service("bare", {}))
    world.zone.set_pod(pod(0))
    assert world.take() == set()


def test_telling_the_same_again_changes_nothing() -> None:
    world = World()
    world.zone.set_service(service())
    world.zone.set_pod(pod(0))
    world.take()
    world.zone.set_service(service())
    world.zone.set_pod(pod(0))
    assert not world.zone.take_update()


_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("no pod"), st.integers(0, 3), st.none()),
        st.tuples(st.just("service"), st.sampled_from(["j", "k"]), st.booleans()),
        st.tuples(st.just("no service"), st.sampled_from(["j", "k"]), st.none()),
        st.tuples(st.just("take"), st.none(), st.none()),
    )
)


@given(_CHANGES)
def test_updates_add_up_to_what_a_new_zone_would_say(changes: list[tuple[str, Any, Any]]) -> None:
    world = World()
    pods: dict[int, bool] = {}
    services: dict[str, bool] = {}
    for what, which, how in changes:
        if what == "pod":
            pods[which] = how
            world.zone.set_pod(pod(which, ready=how))
        elif what == "no pod":
            pods.pop(which, None)
            world.zone.remove_pod("ns", f"j-w-{which}")
        elif what == "service":
            services[which] = how
            world.zone.set_service(service(which, publishNotReadyAddresses=how))
        elif what == "no service":
            services.pop(which, None)
            world.zone.remove_service("ns", which)
        else:
            world.take()
    fresh = World()
    for index, ready in pods.items():
        fresh.zone.set_pod(pod(index, ready=ready))
    for name, publishing in services.items():
        fresh.zone.set_service(service(name, publishNotReadyAddresses=publishing))
    assert world.take() == fresh.take()
    assert world.services == fresh.services
