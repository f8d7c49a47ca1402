"""Job volumes: claims that are made for a Job, and what its pods mount.

Source: job-api.md section 3.3. Names are made from the Job's UID, so that the same claim is found
again whatever happened to the manifest (user case P94).
"""

import msgspec

from vcjob.api.kinds import PERSISTENT_VOLUME_CLAIM
from vcjob.api.names import claim_name, claim_volume_name
from vcjob.api.types import Job, Object


class Claim(msgspec.Struct, frozen=True):
    """The claim of ``spec.volumes[index]``. ``spec`` is None for a claim that others make."""

    index: int
    name: str
    mount_path: str
    spec: Object | None


def claims_of(job: Job) -> list[Claim]:
    """One claim for each job volume that names or describes one.

    A name in the manifest is kept, also beside a claim to be made: it was written back there.
    """
    claims = []
    for index, volume in enumerate(job.spec.volumes):
        if volume.volume_claim_name or volume.volume_claim is not None:
            name = volume.volume_claim_name or claim_name(
                job.metadata.name, job.metadata.uid, index
            )
            claims.append(Claim(index, name, volume.mount_path, volume.volume_claim))
    return claims


def claim_objects(claims: list[Claim]) -> list[Object]:
    """The PersistentVolumeClaims to be made."""
    return [
        {
            "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
            "kind": PERSISTENT_VOLUME_CLAIM.kind,
            "metadata": {"name": claim.name},
            "spec": claim.spec,
        }
        for claim in claims
        if claim.spec is not None
    ]


def add_claims(spec: Object, job: str, claims: list[Claim]) -> None:
    """Mount the claims in the containers of a pod spec; init containers get none.

    Of two volumes with the same claim only the first counts. Changes ``spec``, whose lists and
    containers must be its own.
    """
    first_of = {claim.name: claim for claim in reversed(claims)}
    distinct = [claim for claim in claims if first_of[claim.name] is claim]
    for claim in distinct:
        name = claim_volume_name(job, claim.name)
        source = {"claimName": claim.name}
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": source})
        for container in spec.get("containers", []):
            mount = {"name": name, "mountPath": claim.mount_path}
            container.setdefault("volumeMounts", []).append(mount)
