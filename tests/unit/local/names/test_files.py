"""Files by which a pod's programs find names."""

from typing import Any

import pytest

from vcjob.local.names.files import NSSWITCH, full_name, hostname, hosts, resolv_conf


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "mnist-ps-0", "namespace": "ml"}, "spec": spec}


GUIDE = pod(hostname="mnist-ps-0", subdomain="mnist")


def test_a_pod_finds_itself_by_every_form_of_its_name() -> None:
    own = hosts(GUIDE, "10.128.0.7").splitlines()[-1]
    assert own.split() == [
        "10.128.0.7",
        "mnist-ps-0.mnist.ml.svc.cluster.local",
        "mnist-ps-0.mnist.ml.svc",
        "mnist-ps-0.mnist.ml",
        "mnist-ps-0.mnist",
        "mnist-ps-0",
    ]


def test_a_pod_without_subdomain_has_its_host_name_only() -> None:
    assert hosts(pod(), "10.128.0.7").splitlines()[-1] == "10.128.0.7\tmnist-ps-0"
    assert full_name(pod()) == ""


def test_host_aliases_come_last() -> None:
    aliases = [{"ip": "10.1.2.3", "hostnames": ["foo.local", "bar.local"]}, {"ip": "10.1.2.4"}]
    lines = hosts(pod(hostAliases=aliases), "10.128.0.7").splitlines()
    assert lines[-1] == "10.1.2.3\tfoo.local bar.local"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "mnist-ps-0"),
        ({"hostname": "boss"}, "boss"),
        ({"hostname": "boss", "subdomain": "s"}, "boss"),
        (
            {"hostname": "boss", "subdomain": "s", "setHostnameAsFQDN": True},
            "boss.s.ml.svc.cluster.local",
        ),
        ({"setHostnameAsFQDN": True}, "mnist-ps-0"),
    ],
)
def test_the_host_name(spec: dict[str, Any], expected: str) -> None:
    assert hostname(pod(**spec)) == expected


def test_a_long_pod_name_is_cut_to_what_a_host_name_may_be() -> None:
    long = {"metadata": {"name": "a" * 62 + "-b", "namespace": "ml"}, "spec": {}}
    assert hostname(long) == "a" * 62


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        (
            {},
            [
                "nameserver 10.128.0.1",
                "search ml.svc.cluster.local svc.cluster.local cluster.local",
                "options ndots:5 timeout:1 attempts:5",
            ],
        ),
        ({"dnsPolicy": "Default"}, ["nameserver 10.128.0.1"]),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.9.9.9"], "searches": ["x.y"]}},
            ["nameserver 10.9.9.9", "search x.y"],
        ),
        (
            {"dnsConfig": {"options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}},
            [
                "nameserver 10.128.0.1",
                "search ml.svc.cluster.local svc.cluster.local cluster.local",
                "options timeout:1 attempts:5 ndots:2 edns0",
            ],
        ),
    ],
)
def test_resolv_conf(spec: dict[str, Any], lines: list[str]) -> None:
    assert resolv_conf(pod(**spec), "10.128.0.1").splitlines() == lines


def test_names_are_looked_up_in_files_and_by_dns_only() -> None:
    assert "hosts: files dns\n" in NSSWITCH
