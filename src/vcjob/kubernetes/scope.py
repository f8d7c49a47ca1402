"""Which part of a cluster is seen: a namespace or all of them, kinds, labels."""

from collections.abc import Mapping

import msgspec

from vcjob.api.kinds import POD, Kind
from vcjob.api.names import JOB_NAME


class Scope(msgspec.Struct, frozen=True):
    """What is seen.

    Args:
        namespace: the only one; None: all.
        cluster_scoped: whether what is in no namespace may be read (Queues, PriorityClasses,
            Nodes); with Roles only nobody may.
        all_pods: whether pods that are of no Job are seen, too.
    """

    namespace: str | None = None
    cluster_scoped: bool = True
    all_pods: bool = False

    def is_hidden(self, kind: Kind) -> bool:
        """Whether objects of a kind cannot be seen at all."""
        return not kind.namespaced and not self.cluster_scoped

    def place(self, kind: Kind, namespace: str | None) -> str | None:
        """The namespace to ask for objects of a kind, None standing for all at once.

        Pods of others take room on nodes wherever they are.
        """
        whole = not kind.namespaced or (kind == POD and self.all_pods)
        return namespace if namespace is not None or whole else self.namespace

    def selector(self, kind: Kind, labels: Mapping[str, str] | None) -> str:
        """The label selector for objects of a kind that carry ``labels``."""
        equal = [f"{key}={value}" for key, value in (labels or {}).items()]
        if kind == POD and not self.all_pods:
            equal.append(JOB_NAME)
        return ",".join(equal)


EVERYTHING = Scope()
