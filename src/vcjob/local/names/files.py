"""The files of a pod by which its programs find names: resolv.conf, hosts, nsswitch.conf.

Pure: texts from a Pod object. Sources: Kubernetes documentation, "DNS for Services and Pods" and
"Adding entries to Pod /etc/hosts with HostAliases"; resolv.conf(5), hosts(5), nsswitch.conf(5).
"""

from collections.abc import Iterator, Sequence

from vcjob.api.types import Object
from vcjob.local.names import CLUSTER_DOMAIN

NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
"""Look names up in /etc/hosts, then by DNS; nothing that would need a daemon of this machine."""

_MOST_HOSTNAME = 63
_OPTIONS = ("ndots:5", "timeout:1", "attempts:5")


def hostname(pod: Object) -> str:
    """The host name a pod's programs see; with setHostnameAsFQDN the full one."""
    short = _short_hostname(pod)
    full = full_name(pod)
    return full if full and pod["spec"].get("setHostnameAsFQDN") else short


def full_name(pod: Object) -> str:
    """``<hostname>.<subdomain>.<namespace>.svc.cluster.local``, "" for a pod without subdomain."""
    subdomain = pod["spec"].get("subdomain")
    if not subdomain:
        return ""
    namespace = pod["metadata"]["namespace"]
    return f"{_short_hostname(pod)}.{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}"


def _short_hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"][:_MOST_HOSTNAME]).rstrip("-.")


def hosts(pod: Object, address: str) -> str:
    """/etc/hosts: the pod's own names in every form its peers use, and its hostAliases.

    A pod resolves itself here, ready or not and whatever the name server publishes (P27).
    """
    full = full_name(pod)
    short = _short_hostname(pod)
    names = [*_shorter(full), short] if full else [short]
    lines = [
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        f"{address}\t{' '.join(names)}",
    ]
    lines += [
        f"{alias['ip']}\t{' '.join(alias['hostnames'])}"
        for alias in pod["spec"].get("hostAliases") or ()
        if alias.get("hostnames")
    ]
    return "".join(f"{line}\n" for line in lines)


def _shorter(full: str) -> Iterator[str]:
    """The full name and what the search list lets one leave out at its end."""
    yield full
    host, subdomain, namespace = full.split(".")[:3]
    yield f"{host}.{subdomain}.{namespace}.svc"
    yield f"{host}.{subdomain}.{namespace}"
    yield f"{host}.{subdomain}"


def resolv_conf(pod: Object, server: str) -> str:
    """/etc/resolv.conf for dnsPolicy and dnsConfig; ``server`` is the address of our name server.

    A pod has no way to this machine's own resolvers, so ``Default`` means our server without the
    search list.
    """
    spec = pod["spec"]
    config = spec.get("dnsConfig") or {}
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    servers: list[str] = [] if policy == "None" else [server]
    searches: list[str] = []
    options: list[str] = []
    if policy not in ("None", "Default"):
        namespace = pod["metadata"]["namespace"]
        searches = [f"{namespace}.svc.{CLUSTER_DOMAIN}", f"svc.{CLUSTER_DOMAIN}", CLUSTER_DOMAIN]
        options = list(_OPTIONS)
    servers += config.get("nameservers") or ()
    searches += config.get("searches") or ()
    for option in config.get("options") or ():
        name, value = option["name"], option.get("value")
        options = [old for old in options if old.partition(":")[0] != name]
        options.append(f"{name}:{value}" if value else name)
    lines = [f"nameserver {address}" for address in _distinct(servers)]
    lines += [f"search {' '.join(_distinct(searches))}"] if searches else []
    lines += [f"options {' '.join(options)}"] if options else []
    return "".join(f"{line}\n" for line in lines)


def _distinct(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))
