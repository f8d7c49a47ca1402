"""The pods' network for real: each test in network namespaces of its own, as root or as a user."""

import os
import resource
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from dnslib import RCODE, DNSRecord

from vcjob.api import names
from vcjob.api.types import Object
from vcjob.local.names.records import Zone
from vcjob.local.names.server import encode_update as encode_names
from vcjob.local.network.addresses import NODE_ADDRESS, AddressPool
from vcjob.local.network.nftables import encode_update
from vcjob.local.network.policy import PolicyTable
from vcjob.local.network.set_up import set_up_network
from vcjob.local.node import syscalls
from vcjob.local.node.identity import choose_maps, write_maps

pytestmark = pytest.mark.local

PORT = 2222
SECONDS = 10.0


def in_world(work: Callable[[], None]) -> None:
    """Run in a child process, in new user, network and pid namespaces; fail as it fails."""
    unshared, tell = os.pipe()
    mapped, go = os.pipe()
    child = os.fork()
    if child == 0:
        _run_and_exit(lambda: _enter_and_work(tell, mapped, work))
    os.close(tell)
    assert os.read(unshared, 1) == b"u"
    write_maps(child, choose_maps())
    os.write(go, b"m")
    os.close(unshared)
    os.close(mapped)
    os.close(go)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "see the traceback on standard error"


def _enter_and_work(tell: int, mapped: int, work: Callable[[], None]) -> None:
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    syscalls.set_dumpable()
    os.write(tell, b"u")
    assert os.read(mapped, 1) == b"m"
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    syscalls.unshare(syscalls.CLONE_NEWNET | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID)
    first = os.fork()
    if first == 0:
        _run_and_exit(lambda: _mount_and_work(work))
    _, status = os.waitpid(first, 0)
    os._exit(os.waitstatus_to_exitcode(status))


def _mount_and_work(work: Callable[[], None]) -> None:
    syscalls.mount("", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("proc", "/proc", "proc", 0)
    work()


def _run_and_exit(work: Callable[[], None]) -> None:
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


class World:
    """The node's side, with what an engine keeps."""

    def __init__(self) -> None:
        self.network, (feed,) = set_up_network()
        self.feed = socket.socket(fileno=feed)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.pool, self.policies, self.zone = AddressPool(), PolicyTable(), Zone()
        self.namespaces: dict[str, int] = {}
        self.addresses: dict[str, str] = {}

    def update(self) -> None:
        self.network.set_policy(encode_update(self.policies.take_update()))
        self.feed.sendall(encode_names(self.zone.take_update()))

    def add_pod(self, name: str, job: str, ready: bool = True, **labels: str) -> str:
        address = str(self.pool.take())
        pod: Object = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": {names.JOB_NAME: job, names.JOB_NAMESPACE: "default", **labels},
            },
            "spec": {
                "hostname": name,
                "subdomain": job,
                "containers": [{"ports": [{"name": "http", "containerPort": PORT}]}],
            },
            "status": {
                "podIP": address,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        }
        group = self.policies.set_pod(pod, address)
        self.zone.set_pod(pod)
        self.update()
        self.namespaces[name] = self.network.add_pod(name, address, group)
        self.addresses[name] = address
        return address

    def remove_pod(self, name: str) -> None:
        self.policies.remove_pod("default", name)
        self.zone.remove_pod("default", name)
        self.update()
        self.network.remove_pod(name)
        self.pool.release(IPv4Address(self.addresses.pop(name)))

    def policy(self, name: str, **spec: object) -> None:
        self.policies.set_policy({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        self.update()

    def keep_to_itself(self, job: str) -> None:
        own = {"matchLabels": {names.JOB_NAME: job, names.JOB_NAMESPACE: "default"}}
        self.policy(
            job,
            podSelector=own,
            ingress=[{"from": [{"podSelector": own}]}],
            policyTypes=["Ingress"],
        )

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        syscalls.setns(self.namespaces[name], syscalls.CLONE_NEWNET)
        try:
            yield
        finally:
            syscalls.setns(self.home, syscalls.CLONE_NEWNET)

    def listen(self, name: str, port: int = PORT) -> socket.socket:
        with self.inside(name):
            listener = socket.create_server(("0.0.0.0", port))
            listener.settimeout(SECONDS)
            return listener

    def datagrams(self, name: str, port: int = 0) -> socket.socket:
        with self.inside(name):
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind(("0.0.0.0", port))
        opened.settimeout(SECONDS)
        return opened

    def connect(self, name: str, to: str, port: int = PORT) -> socket.socket:
        with self.inside(name):
            opened = socket.socket()
        opened.settimeout(SECONDS)
        opened.connect((self.addresses[to], port))
        return opened

    def reaches(self, name: str, to: str, port: int = PORT) -> bool:
        """Whether a connection to a port that is listened on comes about.

        What the filter drops shows only by silence; a first try that was dropped in between would
        be repeated after a second.
        """
        with self.inside(name), socket.socket() as opened:
            opened.settimeout(0.7)
            try:
                opened.connect((self.addresses[to], port))
            except TimeoutError:
                return False
            return True

    def look_up(self, pod: str, name: str, kind: str = "A") -> DNSRecord:
        with self.datagrams(pod) as asking:
            asking.sendto(DNSRecord.question(name, kind).pack(), (str(NODE_ADDRESS), 53))
            return DNSRecord.parse(asking.recv(4096))


def test_two_pods_listen_on_the_same_port_and_see_each_others_address() -> None:
    def work() -> None:
        world = World()
        for name in ("a", "b"):
            world.add_pod(name, "job")
        with world.listen("a") as at_a, world.listen("b") as at_b:
            for listener, source, target in ((at_a, "b", "a"), (at_b, "a", "b")):
                with world.connect(source, target):
                    accepted, peer = listener.accept()
                    accepted.close()
                    assert peer[0] == world.addresses[source]

    in_world(work)


def test_a_pod_reaches_itself_by_its_address_and_by_loopback() -> None:
    def work() -> None:
        world = World()
        world.add_pod("a", "job")
        with world.listen("a") as listener, world.connect("a", "a"):
            accepted, peer = listener.accept()
            accepted.close()
            assert peer[0] == world.addresses["a"]
        with world.inside("a"), socket.create_server(("127.0.0.1", 1)) as listener:
            socket.create_connection(("127.0.0.1", 1), SECONDS).close()

    in_world(work)


def test_the_node_reaches_pods_whatever_policy_says() -> None:
    def work() -> None:
        world = World()
        world.add_pod("a", "job")
        world.policy("nobody", podSelector={}, policyTypes=["Ingress", "Egress"])
        with world.listen("a") as listener:
            socket.create_connection((world.addresses["a"], PORT), SECONDS).close()
            accepted, peer = listener.accept()
            accepted.close()
            assert peer[0] == str(NODE_ADDRESS)

    in_world(work)


def test_an_interface_as_manifests_expect_it() -> None:
    def work() -> None:
        world = World()
        world.add_pod("a", "job")
        with world.inside("a"):
            assert [name for _, name in socket.if_nameindex()] == ["lo", "eth0"]
            interfaces = Path("/proc/thread-self/net/dev").read_text()
            assert "eth0" in interfaces
            # eth0 has no IPv6 address; loopback keeps ::1.
            addresses = Path("/proc/thread-self/net/if_inet6").read_text().split("\n")
            assert [line.split()[-1] for line in addresses if line] == ["lo"]
            assert Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text() == "0\n"

    in_world(work)


def test_a_jobs_policy_lets_its_own_pods_in_and_no_others() -> None:
    def work() -> None:
        world = World()
        for name, job in (("a", "one"), ("b", "one"), ("c", "two")):
            world.add_pod(name, job)
        with world.listen("a"), world.listen("c"):
            assert world.reaches("c", "a")
            world.keep_to_itself("one")
            assert world.reaches("b", "a")
            assert not world.reaches("c", "a")
            # The reply to what a's pod asked for comes back in.
            assert world.reaches("a", "c")
            world.add_pod("d", "one")
            assert world.reaches("d", "a")
            world.policies.remove_policy("default", "one")
            world.update()
            assert world.reaches("c", "a")

    in_world(work)


def test_datagrams_that_answer_pass_and_others_do_not() -> None:
    def work() -> None:
        world = World()
        for name, job in (("a", "one"), ("c", "two"), ("d", "two")):
            world.add_pod(name, job)
        world.keep_to_itself("one")
        with world.datagrams("a", PORT) as at_a, world.datagrams("c", PORT) as at_c:
            at_c.sendto(b"unasked", (world.addresses["a"], PORT))
            at_a.sendto(b"question", (world.addresses["c"], PORT))
            assert at_c.recvfrom(100) == (b"question", (world.addresses["a"], PORT))
            with world.datagrams("d", PORT) as at_d:
                at_d.sendto(b"from elsewhere", (world.addresses["a"], PORT))
            with world.datagrams("c") as other:
                other.sendto(b"from another port", (world.addresses["a"], PORT))
            at_c.sendto(b"answer", (world.addresses["a"], PORT))
            assert at_a.recv(100) == b"answer"

    in_world(work)


def test_ports_blocks_and_pods_by_label() -> None:
    def work() -> None:
        world = World()
        world.add_pod("a", "one", role="server")
        world.add_pod("b", "one", role="client")
        world.add_pod("c", "one")
        blocked = f"{world.addresses['b']}/32"
        for port in (PORT, 80, 81, 82):
            world.listen("a", port).detach()
        server = {"matchLabels": {"role": "server"}}
        clients = {"podSelector": {"matchLabels": {"role": "client"}}}
        everybody_else = {"ipBlock": {"cidr": "10.0.0.0/8", "except": [blocked]}}
        world.policy(
            "server",
            podSelector=server,
            ingress=[
                {"from": [clients], "ports": [{"port": "http"}]},
                {"from": [everybody_else], "ports": [{"port": 80, "endPort": 81}]},
                {"ports": [{"port": 82, "protocol": "UDP"}]},
            ],
        )
        found = {
            (source, port)
            for source in ("b", "c")
            for port in (PORT, 80, 81, 82)
            if world.reaches(source, "a", port)
        }
        assert found == {("b", PORT), ("c", 80), ("c", 81)}

    in_world(work)


def test_egress_is_held_and_names_are_still_found() -> None:
    def work() -> None:
        world = World()
        for name in ("a", "b", "c"):
            world.add_pod(name, "one", role=name)
        b = {"podSelector": {"matchLabels": {"role": "b"}}}
        world.policy(
            "out",
            podSelector={"matchLabels": {"role": "a"}},
            egress=[{"to": [b]}],
            policyTypes=["Egress"],
        )
        with world.listen("a"), world.listen("b"), world.listen("c"):
            assert world.reaches("a", "b")
            assert not world.reaches("a", "c")
            assert world.reaches("c", "a")
        assert world.look_up("a", "nothing.default.svc.cluster.local").header.rcode

    in_world(work)


def test_names_are_answered_inside_a_pod() -> None:
    def work() -> None:
        world = World()
        world.zone.set_service(
            {
                "metadata": {"name": "job", "namespace": "default"},
                "spec": {
                    "clusterIP": "None",
                    "selector": {names.JOB_NAME: "job"},
                    "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
                },
            }
        )
        ready = [world.add_pod(name, "job") for name in ("a", "b")]
        world.add_pod("late", "job", ready=False)
        zone = "job.default.svc.cluster.local"

        def found(name: str, kind: str = "A") -> list[str]:
            return sorted(str(record.rdata) for record in world.look_up("b", name, kind).rr)

        assert found(f"a.{zone}") == [world.addresses["a"]]
        assert found(zone) == sorted(ready)
        assert found(f"_http._tcp.{zone}", "SRV") == [
            f"0 100 {PORT} {pod}.{zone}." for pod in ("a", "b")
        ]
        assert found(f"late.{zone}") == []
        no_data = world.look_up("b", f"a.{zone}", "AAAA")
        assert (no_data.header.rcode, no_data.rr) == (RCODE.NOERROR, [])
        assert world.look_up("b", f"nobody.{zone}").header.rcode == RCODE.NXDOMAIN
        world.remove_pod("a")
        assert found(f"a.{zone}") == []

    in_world(work)


def test_a_thousand_pods_and_nothing_left_of_those_removed() -> None:
    def work() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # as the node does
        world = World()
        world.keep_to_itself("job")
        before = set(socket.if_nameindex())
        for number in range(1000):
            world.add_pod(f"p{number}", "job")
        assert len(set(world.addresses.values())) == 1000
        with world.listen("p999"):
            assert world.reaches("p0", "p999")
        gone = world.addresses["p999"]
        for number in range(1000):
            world.remove_pod(f"p{number}")
        assert gone not in Path("/proc/net/route").read_text()
        # The kernel takes the links away in the background.
        while set(socket.if_nameindex()) - before:
            os.sched_yield()

    in_world(work)


def test_a_pod_that_cannot_be_made_leaves_nothing_and_the_thread_stays_home() -> None:
    def work() -> None:
        world = World()
        address = world.add_pod("a", "job")
        before = os.listdir("/proc/self/fd")
        with pytest.raises(Exception, match="cannot make a pod's link"):
            world.network.add_pod("again", address, 1)
        with world.listen("a"):  # whose address it is can still be reached
            socket.create_connection((address, PORT), SECONDS).close()
        assert os.listdir("/proc/self/fd") == before
        assert os.stat("/proc/self/ns/net").st_ino == os.fstat(world.home).st_ino

    in_world(work)
