"""The pods' network: what the node process needs of it.

``set_up.set_up_network`` makes it, with the name server beside it, inside the node's network
namespace. The engine keeps addresses (``addresses.AddressPool``) and compiles policies
(``policy.PolicyTable``).
"""

from ipaddress import IPv4Address

from vcjob.local.network.addresses import POD_SUBNET
from vcjob.local.network.links import NodeNetwork, PodLink
from vcjob.local.network.nftables import PacketFilter


class PodNetwork:
    """Pods by UID in the network namespace that this is made in.

    Everything may raise NetlinkError, whose text says what could not be done, or OSError.
    """

    def __init__(self) -> None:
        self._node = NodeNetwork()
        self._filter = PacketFilter()
        self._pods: dict[str, PodLink] = {}

    def try_out(self) -> None:
        """Make and remove a pod's network, to learn whether this kernel can."""
        self._node.remove_pod(self._node.add_pod(POD_SUBNET[-2], 0))

    def add_pod(self, uid: str, address: str, group: int) -> int:
        """Give a pod its network; returns a descriptor of its namespace, which stays ours.

        ``group`` is the interface group that the packet filter knows it by
        (``PolicyTable.set_pod``).
        """
        pod = self._node.add_pod(IPv4Address(address), group)
        self._pods[uid] = pod
        return pod.namespace

    def remove_pod(self, uid: str) -> None:
        """Make a pod unreachable and let go of its network; one that is not there is fine."""
        if pod := self._pods.pop(uid, None):
            self._node.remove_pod(pod)

    def set_policy(self, rules: bytes) -> None:
        """Change the packet filter by an update of ``PolicyTable``, each of them in turn.

        ``rules`` is what ``nftables.encode_update`` makes of it.
        """
        self._filter.apply(rules)


__all__ = ["PodNetwork"]
