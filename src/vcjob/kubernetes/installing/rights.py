"""What the operator and the webhook may do, as one table.

The roles that are installed are made from it, and docs/security.md shows it. Tests compare it with
what the code asks for: no right is lacking, and none is there without use unless its row says why.

Source: Kubernetes documentation, "Using RBAC Authorization" and "Authorization Overview" (verbs).
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    EVENT,
    JOB,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    NETWORK_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SERVICE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.kubernetes.installing.installation import (
    CERTIFICATE_SECRET,
    OPERATOR,
    VOLCANO_LEASES,
    WEBHOOK,
    Installation,
)


class Scope(StrEnum):
    """Where a right holds."""

    JOBS = "namespaces of Jobs"
    CLUSTER = "cluster"
    OWN = "own namespace"
    VOLCANO = "Volcano's namespace"


class Feature(StrEnum):
    """What needs a right. Each can be told apart in the table, and some can be left out."""

    JOBS = "Jobs"
    GANGS = "Gangs"
    PLUGINS = "Objects of plugins"
    KEYS = "Keys of the plugin ssh"
    VOLUMES = "Job volumes"
    EVENTS = "Events"
    QUEUES = "Queues and priorities"
    QUEUE_STATES = "Queues opened, closed and counted"
    DEFAULT_QUEUE = "The default Queue"
    BUILTIN = "Gangs admitted by the operator"
    ELECTION = "Leader election"
    BESIDE = "Beside Volcano"
    TAKING_OVER = "Taking over from Volcano"
    ADMISSION = "Admission"
    CERTIFICATE = "The webhook's certificate"


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """One row: the verbs that an account may use on a kind, and why.

    ``names`` are the only objects it holds for; none means all. ``unasked`` are those of the verbs
    that no request of ours uses, which ``why`` has to explain.
    """

    feature: Feature
    kind: Kind
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    names: tuple[str, ...] = ()
    scope: Scope = Scope.JOBS
    account: str = OPERATOR
    unasked: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """The resource as roles name it: ``jobs`` or ``jobs/status``."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


_FOLLOW = ("list", "watch")
_KEEP_UP = ("create", "delete", "get", "list", "patch", "watch")


def _of_plugin(kind: Kind, why: str) -> Right:
    return Right(feature=Feature.PLUGINS, kind=kind, verbs=_KEEP_UP, why=why)


def _followed(feature: Feature, kind: Kind, why: str, *, account: str = OPERATOR) -> Right:
    """A kind that is followed in the whole cluster."""
    return Right(
        feature=feature, kind=kind, verbs=_FOLLOW, why=why, scope=Scope.CLUSTER, account=account
    )


def _kept(
    feature: Feature, kind: Kind, name: str, why: str, *, account: str = OPERATOR
) -> tuple[Right, Right]:
    """One object of our own namespace, made and kept up."""
    made = f"Makes that {kind.kind}; a right to create cannot be limited to names."
    return (
        Right(
            feature=feature,
            kind=kind,
            verbs=("get", "patch"),
            why=why,
            names=(name,),
            scope=Scope.OWN,
            account=account,
        ),
        Right(
            feature=feature,
            kind=kind,
            verbs=("create",),
            why=made,
            scope=Scope.OWN,
            account=account,
        ),
    )


RIGHTS: tuple[Right, ...] = (
    Right(
        feature=Feature.JOBS,
        kind=JOB,
        verbs=("delete", "get", "list", "patch", "watch"),
        why="Follows Jobs, writes the names of their claims into them, deletes them when "
        "`ttlSecondsAfterFinished` is over.",
    ),
    Right(
        feature=Feature.JOBS,
        kind=JOB,
        subresource="status",
        verbs=("patch",),
        why="Writes phase, counts and what must outlive a crash.",
    ),
    Right(
        feature=Feature.JOBS,
        kind=JOB,
        subresource="finalizers",
        verbs=("update",),
        unasked=("update",),
        why="Never asked for: clusters with the admission plugin "
        "OwnerReferencesPermissionEnforcement want it of whoever makes objects that a Job owns.",
    ),
    Right(
        feature=Feature.JOBS,
        kind=COMMAND,
        verbs=("delete", "get", "list", "watch"),
        why="Carries out orders (suspend, resume) and takes them away.",
    ),
    Right(
        feature=Feature.JOBS,
        kind=POD,
        verbs=_KEEP_UP,
        why="Makes the pods of Jobs, marks and deletes them. RBAC knows no labels: the right is "
        "for all pods there.",
    ),
    Right(
        feature=Feature.GANGS,
        kind=POD_GROUP,
        verbs=_KEEP_UP,
        why="Makes a Job's PodGroup, which says how many pods must start together.",
    ),
    _of_plugin(CONFIG_MAP, "Host lists (svc)."),
    _of_plugin(SERVICE, "Host names (svc), the head of a cluster (ray)."),
    _of_plugin(NETWORK_POLICY, "Only pods of a Job reach each other (svc)."),
    Right(
        feature=Feature.KEYS,
        kind=SECRET,
        verbs=("create", "delete", "get", "patch"),
        why="One Secret for each Job with the plugin ssh, asked for by its name. Secrets are "
        "neither listed nor watched. `--no-secrets` leaves this out.",
    ),
    Right(
        feature=Feature.VOLUMES,
        kind=PERSISTENT_VOLUME_CLAIM,
        verbs=("create", "get", "list", "watch"),
        why="Makes the claims of `spec.volumes`, waits for those that others make. Never deletes "
        "or changes one.",
    ),
    Right(
        feature=Feature.EVENTS,
        kind=EVENT,
        verbs=("create", "get", "patch"),
        why="Tells about Jobs; counts what is said again.",
    ),
    _followed(Feature.QUEUES, QUEUE, "Jobs wait for a queue that there is not."),
    _followed(
        Feature.QUEUES, PRIORITY_CLASS, "The order in which a Job's tasks count for its minimum."
    ),
    Right(
        feature=Feature.QUEUE_STATES,
        kind=QUEUE,
        subresource="status",
        verbs=("patch",),
        scope=Scope.CLUSTER,
        why="Opens and closes Queues as Commands ask, counts the PodGroups in them. With "
        "`--namespaces` it is left out, as then most PodGroups are not seen.",
    ),
    Right(
        feature=Feature.QUEUE_STATES,
        kind=QUEUE,
        verbs=("get", "patch"),
        scope=Scope.CLUSTER,
        why="Makes sure that it is the same Queue whose status is written; marks Queues that are "
        "closed with the one above them, so that they are opened with it. With `--namespaces` it "
        "is left out.",
    ),
    Right(
        feature=Feature.DEFAULT_QUEUE,
        kind=QUEUE,
        verbs=("create",),
        scope=Scope.CLUSTER,
        why="Makes the Queues `root` and `default` when they are missing; a right to create cannot "
        "be limited to names. Beside Volcano it is left out: Volcano makes them.",
    ),
    _followed(
        Feature.BUILTIN, NODE, "What nodes have room for. `--scheduler volcano` leaves this out."
    ),
    _followed(
        Feature.BUILTIN, POD, "What others' pods use up. `--scheduler volcano` leaves this out."
    ),
    Right(
        feature=Feature.BUILTIN,
        kind=POD_GROUP,
        subresource="status",
        verbs=("patch",),
        unasked=("patch",),
        why="Never asked for: by Volcano's definition and ours PodGroups have no status of their "
        "own, but somebody else's may give them one, where it then tells how gangs stand.",
    ),
    *_kept(Feature.ELECTION, LEASE, OPERATOR, "One replica works, the others wait."),
    Right(
        feature=Feature.BESIDE,
        kind=LEASE,
        verbs=("get",),
        names=VOLCANO_LEASES,
        scope=Scope.VOLCANO,
        why="Sees whether Volcano's controller and scheduler work. Where Volcano is not known to "
        "be there, the right is for Leases of these names in any namespace.",
    ),
    Right(
        feature=Feature.TAKING_OVER,
        kind=LEASE,
        verbs=("patch",),
        names=VOLCANO_LEASES[:1],
        scope=Scope.VOLCANO,
        why="Holds the Lease of Volcano's controller so that it waits. Only with `--take-over`.",
    ),
    Right(
        feature=Feature.TAKING_OVER,
        kind=LEASE,
        verbs=("create",),
        scope=Scope.VOLCANO,
        why="Makes that Lease where there is none. Only with `--take-over`.",
    ),
    _followed(
        Feature.ADMISSION,
        QUEUE,
        "Refuses Jobs for a queue that there is not, is closed or has queues below it.",
        account=WEBHOOK,
    ),
    _followed(
        Feature.ADMISSION,
        PRIORITY_CLASS,
        "Warns of a priority class that there is not.",
        account=WEBHOOK,
    ),
    *_kept(
        Feature.CERTIFICATE,
        SECRET,
        CERTIFICATE_SECRET,
        "Keeps its certificate there, for all replicas, and renews it.",
        account=WEBHOOK,
    ),
    *(
        Right(
            feature=Feature.CERTIFICATE,
            account=WEBHOOK,
            kind=kind,
            verbs=("get", "patch"),
            names=(WEBHOOK,),
            scope=Scope.CLUSTER,
            why="Writes into it who signed the certificate.",
        )
        for kind in (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
    ),
)


HEADINGS = ("For", "Where", "Resource", "Verbs", "Only named", "Why")


def row(right: Right) -> tuple[str, ...]:
    """A row of the table as docs/security.md shows it, below ``HEADINGS``."""
    kind = right.kind
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    part = f"/{right.subresource}" if right.subresource else ""
    names = ", ".join(f"`{name}`" for name in right.names)
    verbs = ", ".join(right.verbs)
    return right.feature, right.scope, f"`{resource}{part}`", verbs, names, right.why


def granted(installation: Installation) -> Iterator[Right]:
    """The rows that an installation needs."""
    return (right for right in RIGHTS if _is_needed(right, installation))


def _is_needed(right: Right, installation: Installation) -> bool:
    if right.account == WEBHOOK:
        return installation.has_webhook
    if right.scope is Scope.CLUSTER and installation.roles_only:
        return False
    match right.feature:
        case Feature.KEYS:
            return installation.secrets
        case Feature.QUEUE_STATES:
            return not installation.namespaces
        case Feature.DEFAULT_QUEUE:
            return not installation.beside_volcano
        case Feature.BUILTIN:
            return installation.gang_scheduler != "volcano"
        case Feature.TAKING_OVER:
            return installation.take_over
        case _:
            return True
