"""Whether a cluster has what an operator needs: kinds that are served, and rights.

Both are asked of the API server, so that what is missing is said before anything fails for it:
which CustomResourceDefinition, which verb on which resource.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from vcjob.api.crd import INSTALLED
from vcjob.api.kinds import Kind
from vcjob.controller.cluster import Cluster, ClusterError, Forbidden, NotFound
from vcjob.controller.parallel import for_each
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.errors import Asked
from vcjob.kubernetes.installing.installation import OPERATOR
from vcjob.kubernetes.installing.rights import Feature, Right, Scope, granted
from vcjob.kubernetes.operator_options import OperatorOptions

ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)
FOLLOWING = ("list", "watch")
"""Verbs without which nothing is known, so that nothing can be decided."""

_SELDOM_SECONDS = 300.0
_LOOK_SECONDS = 30.0
_AGAIN_SECONDS = 5.0
_QUESTIONS_AT_ONCE = 8
_DISCOVERY_SECONDS = 10.0
"""How long the first question of all may take: till then nobody is told what is wrong."""


class Question(msgspec.Struct, frozen=True):
    """One thing that we may be allowed to do; an empty namespace means all of them."""

    right: Right
    verb: str
    namespace: str = ""
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """The question as a SelfSubjectAccessReview asks it."""
        kind = self.right.kind
        asked = {
            "verb": self.verb,
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "subresource": self.right.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {key: value for key, value in asked.items() if value}


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


_read_resources = msgspec.json.Decoder(_Resources).decode


async def missing_kinds(cluster: KubernetesCluster) -> list[str]:
    """CustomResourceDefinitions that the cluster lacks, by their names; raises ClusterError."""
    missing = []
    for group, kinds in _by_group(INSTALLED).items():
        asked = Asked("get", name=f"/apis/{group}")
        try:
            answer = await cluster.connection.request(
                "GET", f"/apis/{group}", asked, seconds=_DISCOVERY_SECONDS
            )
        except NotFound:
            served: set[str] = set()
        else:
            listed = cluster.connection.decode(answer, asked, _read_resources).resources or ()
            served = {resource.name for resource in listed}
        missing += [f"{kind.plural}.{kind.group}" for kind in kinds if kind.plural not in served]
    return missing


def questions(options: OperatorOptions) -> Iterator[Question]:
    """Every right that an operator with these options needs, but for those told elsewhere.

    Of the Leases, those who use them tell; and that there is no default Queue, who misses it.
    """
    for right in granted(options.installation):
        if right.account != OPERATOR or right.feature in _TOLD_ELSEWHERE:
            continue
        for verb in right.verbs:
            if verb in right.unasked:
                continue
            for namespace in _namespaces(right, options):
                for name in right.names or ("",):
                    yield Question(right, verb, namespace, name)


_TOLD_ELSEWHERE = {
    Feature.ELECTION,
    Feature.BESIDE,
    Feature.TAKING_OVER,
    Feature.DEFAULT_QUEUE,
}


def _namespaces(right: Right, options: OperatorOptions) -> tuple[str, ...]:
    match right.scope:
        case Scope.JOBS:
            return options.namespaces or ("",)
        case Scope.OWN:
            return (options.lease_namespace,)
        case Scope.VOLCANO:
            return (options.volcano_namespace,)
        case _:
            return ("",)


async def refused(cluster: Cluster, asked: Iterable[Question]) -> list[Question]:
    """Those of the questions that the server answers with no; raises ClusterError."""
    listed = list(asked)
    denied: list[Question] = []

    async def ask(question: Question) -> None:
        review = {"metadata": {}, "spec": {"resourceAttributes": question.attributes}}
        answer = await cluster.create(ACCESS_REVIEW, review)
        if not (answer.get("status") or {}).get("allowed"):
            denied.append(question)

    for failure in await for_each(listed, ask, at_once=_QUESTIONS_AT_ONCE):
        if isinstance(failure, Forbidden):  # who may not ask finds out by trying
            return []
        raise failure
    return sorted(denied, key=listed.index)


def sentence(denied: Iterable[Question]) -> str:
    """Which verbs on which resources are not ours, in words."""
    verbs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for question in denied:
        kind = question.right.kind
        resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        if question.right.subresource:
            resource += f"/{question.right.subresource}"
        where = f' in namespace "{question.namespace}"' if question.namespace else ""
        named = f' "{question.name}"' if question.name else ""
        verbs[f"{resource}{named}", where].append(question.verb)
    return "; ".join(
        f"{_all_of(dict.fromkeys(these))} {what}{where}" for (what, where), these in verbs.items()
    )


_DISPENSABLE = (
    (Feature.KEYS, Condition.SECRETS, "Jobs with the plugin ssh wait"),
    (Feature.QUEUE_STATES, Condition.QUEUES, "Queues are not opened, closed or counted"),
    (Feature.EVENTS, Condition.EVENTS, "what happens is told by no Events"),
)
"""Without which rights the operator works all the same, and what it then does not."""


class Requirements:
    """Asks a cluster again and again for what it needs, and tells a Readiness.

    Args:
        cluster: what is asked.
        options: what decides about the rights that are needed.
        readiness: gets what is missing.
    """

    def __init__(
        self, cluster: KubernetesCluster, options: OperatorOptions, readiness: Readiness
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._readiness = readiness
        self._rights_asked = float("-inf")
        self._blind = self._partly_blind = True

    async def met(self) -> None:
        """Return when the server answers, serves every kind and lets us follow them."""
        while True:
            if await self._ask():
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def follow(self) -> None:
        """Go on asking: seldom while all is well."""
        while True:
            fine = await self._ask()
            await asyncio.sleep(_LOOK_SECONDS if fine else _AGAIN_SECONDS)

    async def _ask(self) -> bool:
        """Whether nothing is missing without which nothing can be decided."""
        try:
            missing = await missing_kinds(self._cluster)
            if not missing:
                await self._ask_for_rights()
        except ClusterError as error:
            self._readiness.fail(Condition.SERVER, str(error))
            return False
        self._readiness.meet(Condition.SERVER)
        if missing:
            self._readiness.fail(
                Condition.KINDS,
                f"the cluster has no CustomResourceDefinition {_all_of(missing)}: "
                "vcjob manifests | kubectl apply -f -",
            )
            return False
        self._readiness.meet(Condition.KINDS)
        return not self._blind

    async def _ask_for_rights(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._rights_asked + _SELDOM_SECONDS and not self._partly_blind:
            return
        denied = await refused(self._cluster, questions(self._options))
        self._rights_asked = now
        unseen = {question.namespace for question in denied if question.verb in FOLLOWING}
        self._partly_blind = bool(unseen)
        self._blind = "" in unseen or unseen >= set(self._options.namespaces or ("",))
        for feature, condition, otherwise in _DISPENSABLE:
            lacking = [question for question in denied if question.right.feature is feature]
            told = f"we may not {sentence(lacking)}: {otherwise}" if lacking else ""
            self._readiness.meet(condition, told, warn=bool(lacking))
            denied = [question for question in denied if question not in lacking]
        if denied:
            waits = "Jobs that need it wait"
            if self._partly_blind:
                there = "" if self._blind else "there "
                waits = f"nothing is decided {there}until we may"
            self._readiness.fail(
                Condition.RIGHTS,
                f"we may not {sentence(denied)}; {waits} "
                "(vcjob manifests --only rbac prints the roles)",
            )
        else:
            self._readiness.meet(Condition.RIGHTS)


def _by_group(kinds: Iterable[Kind]) -> dict[str, list[Kind]]:
    """Kinds by the API group and version that serve them."""
    groups: dict[str, list[Kind]] = defaultdict(list)
    for kind in kinds:
        groups[kind.api_version].append(kind)
    return groups


def _all_of(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
