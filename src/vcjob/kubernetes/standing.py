"""How an operator stands, in the words of the readiness probe; empty if nothing is wrong."""

from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.controller.controller import Controller
from vcjob.controller.leading import Leader
from vcjob.core.times import short_duration
from vcjob.kubernetes.controllers import Controllers
from vcjob.kubernetes.gang_scheduler import GangScheduler
from vcjob.kubernetes.installing.installation import OPERATOR


def doing(leads: bool, holder: str, controllers: Controllers | None) -> str:
    """What this replica does, while nothing is wrong; ``holder`` is who leads."""
    if not leads:
        return f"stands by; {holder or 'nobody'} leads"
    return "leads" if controllers else "leads, and decides nothing now"


def lease_trouble(leader: Leader, namespace: str) -> str:
    """Why the Lease among replicas cannot be had, and what to do about it.

    Its namespace may be missing, or somebody may hold it for long without doing anything.
    """
    trouble = leader.trouble
    if not trouble and (held := leader.silent_lease):
        renewed = (
            f"last renewed it at {held.renew_time}" if held.renew_time else "does not renew it"
        )
        return (
            f"{held.holder_identity} holds the Lease {namespace}/{OPERATOR} for "
            f"{short_duration(held.seconds)}, but {renewed}, and nobody works meanwhile. If that "
            f"process is gone: kubectl -n {namespace} patch lease {OPERATOR} --type=merge "
            """-p '{"spec":{"holderIdentity":""}}'"""
        )
    if f'"{namespace}" not found' in trouble:
        trouble += f"; kubectl create namespace {namespace}, or name another with --lease-namespace"
    return trouble


def cache_trouble(controllers: Controllers | None, gangs: GangScheduler | None) -> str:
    """What is not known that decisions need, in each namespace where it is so."""
    wrong = [
        f"namespace {namespace}: {lacking}" if namespace else lacking
        for namespace, controller in controllers or ()
        if (lacking := _lacking(controller))
    ]
    if wrong:
        return "; ".join(wrong)
    if gangs is not None and not gangs.is_ready:
        return "nodes and pods are being read; no gang is admitted before"
    return ""


def _lacking(controller: Controller) -> str:
    """Most often one cause keeps us from following many kinds: the first stands for them."""
    if troubles := list(controller.troubles.values()):
        first, *more = troubles
        kinds = "another kind" if len(more) == 1 else f"{len(more)} other kinds"
        return f"{first}; {kinds} cannot be followed either" if more else first
    return "" if controller.synced else "Jobs and pods are being read; nothing is decided before"


def queue_trouble(controllers: Controllers, trouble: str) -> str:
    """That there is no default Queue; the controllers must have seen the Queues.

    ``trouble`` is why the operator could not make it; empty if nothing kept it from that.
    """
    if all(DEFAULT_QUEUE in controller.records.queues for _, controller in controllers):
        return ""
    told = (
        f"there is no Queue {DEFAULT_QUEUE}, and Jobs that name none wait: "
        "vcjob manifests --only queues | kubectl apply -f -"
    )
    return f"{told} (the operator cannot make it: {trouble})" if trouble else told
