"""What the controller writes into a Job itself: names of claims, and the mark of forwarding.

Source: job-api.md sections 3.3 and 5; lifecycle.md section 6.
"""

from collections.abc import Sequence

from vcjob.api.names import JOB_FORWARDING
from vcjob.api.types import Job, JobVolume, Object
from vcjob.core.claims import Claim


def amendment(job: Job, claims: Sequence[Claim], *, forwarding: bool) -> Object | None:
    """The merge patch that a Job needs, or None.

    A claim's name is written beside its spec, and again if an apply has erased it. ``forwarding``
    tells that the Job's queue is spread over several clusters.
    """
    patch: Object = {}
    made = {claim.index: claim.name for claim in claims if claim.spec is not None}
    if any(not job.spec.volumes[index].volume_claim_name for index in made):
        volumes = [_volume(one, made.get(index)) for index, one in enumerate(job.spec.volumes)]
        patch["spec"] = {"volumes": volumes}
    if forwarding and job.metadata.annotations.get(JOB_FORWARDING) != "true":
        patch["metadata"] = {"annotations": {JOB_FORWARDING: "true"}}
    return patch or None


def _volume(volume: JobVolume, claim: str | None) -> Object:
    shown: Object = {"mountPath": volume.mount_path}
    if name := claim or volume.volume_claim_name:
        shown["volumeClaimName"] = name
    if volume.volume_claim is not None:
        shown["volumeClaim"] = volume.volume_claim
    return shown
