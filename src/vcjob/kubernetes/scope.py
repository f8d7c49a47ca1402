"""Which part of a cluster an operator sees: namespaces, kinds, labels.

Where it sees several namespaces, each has a list and a watch of its own. Their resource versions
come from one counter, but the highest seen says nothing of a namespace whose watch is slower; so a
list of several namespaces has the version of each: ``a=12,b=15``. A watch goes on from such a text
and then keeps the versions itself; from the version of a single event it cannot go on, and says
Gone.
"""

from collections.abc import Mapping

import msgspec

from vcjob.api.kinds import POD, Kind
from vcjob.api.names import JOB_NAME
from vcjob.controller.cluster import Gone


class Scope(msgspec.Struct, frozen=True):
    """What an operator sees.

    Args:
        namespaces: their names; of none it sees all.
        cluster_scoped: whether it may read what is in no namespace (Queues, PriorityClasses,
            Nodes); with Roles only nobody may.
        all_pods: whether it sees pods that are of no Job, too.
    """

    namespaces: tuple[str, ...] = ()
    cluster_scoped: bool = True
    all_pods: bool = False

    def is_hidden(self, kind: Kind) -> bool:
        """Whether objects of a kind cannot be seen at all."""
        return not kind.namespaced and not self.cluster_scoped

    def places(self, kind: Kind, namespace: str | None) -> tuple[str | None, ...]:
        """The namespaces to ask for objects of a kind, None standing for all at once.

        Pods of others take room on nodes wherever they are.
        """
        whole = not kind.namespaced or not self.namespaces or (kind == POD and self.all_pods)
        if namespace is not None or whole:
            return (namespace,)
        return self.namespaces

    def selector(self, kind: Kind, labels: Mapping[str, str] | None) -> str:
        """The label selector for objects of a kind that carry ``labels``."""
        equal = [f"{key}={value}" for key, value in (labels or {}).items()]
        if kind == POD and not self.all_pods:
            equal.append(JOB_NAME)
        return ",".join(equal)


EVERYTHING = Scope()


def versions_text(versions: Mapping[str, str]) -> str:
    """One resource version for those of several namespaces."""
    return ",".join(f"{namespace}={version}" for namespace, version in versions.items())


def versions_of(text: str, namespaces: tuple[str | None, ...]) -> dict[str, str]:
    """The resource version of each namespace; raises Gone if ``text`` does not tell them."""
    versions = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if versions.keys() != set(namespaces):
        raise Gone("one version does not tell where the watches of several namespaces are")
    return versions
