"""What an administrator decides about a running operator."""

import msgspec

from vcjob.controller.leading import Terms
from vcjob.kubernetes.installing.installation import NAMESPACE, VOLCANO_NAMESPACE, Installation


class OperatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """See ``vcjob operator --help``.

    ``namespaces`` are the only ones whose Jobs are looked after; none means all.
    ``waits_for_volcano`` is whether a start while Volcano's controller works waits until it does
    not, rather than end: the kubelet would only start it again and again. Volcano's Leases are in
    ``volcano_namespace``. ``terms`` are those of the Lease among replicas. ``api_rate`` is in
    writes a second. ``health_address`` is host (empty: all) and port.
    """

    namespaces: tuple[str, ...] = ()
    scheduler: str = "auto"
    take_over: bool = False
    waits_for_volcano: bool = False
    volcano_namespace: str = VOLCANO_NAMESPACE
    leader_elect: bool = True
    terms: Terms = Terms()
    lease_namespace: str = NAMESPACE
    api_rate: float = 500.0
    api_burst: int = 1000
    api_concurrency: int = 64
    workers: int = 8
    health_address: tuple[str, int] = ("", 8080)
    third_party_plugins: bool = False
    allowed_annotations: tuple[str, ...] = ()

    @property
    def installation(self) -> Installation:
        """The installation whose rights this operator needs."""
        return Installation(
            namespace=self.lease_namespace,
            namespaces=self.namespaces,
            scheduler=self.scheduler,
            take_over=self.take_over,
            volcano_namespace=self.volcano_namespace,
        )
