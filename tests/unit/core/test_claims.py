"""Job volumes: which claims there are to be, and what pods mount."""

from typing import Any

from vcjob.api.types import Job
from vcjob.core.claims import Claim, add_claims, claim_objects, claims_of

SPEC = {"accessModes": ["ReadWriteOnce"]}


def claims(*volumes: dict[str, Any], uid: str = "u") -> list[Claim]:
    return claims_of(
        Job.of({"metadata": {"name": "j", "uid": uid}, "spec": {"volumes": list(volumes)}})
    )


def test_a_claim_that_is_described_gets_a_name_that_is_always_the_same() -> None:
    volume = {"mountPath": "/data", "volumeClaim": SPEC}
    (first,) = claims(volume)
    assert (first.mount_path, first.spec) == ("/data", SPEC)
    assert first.name.startswith("j-pvc-")
    assert claims(volume) == [first]
    names = {one.name for one in (*claims(volume, volume), *claims(volume, uid="other"))}
    assert len(names) == 3, "each place, and each Job of the same name, has its own"


def test_a_name_in_the_manifest_is_kept_also_beside_a_description() -> None:
    named, both = claims(
        {"mountPath": "/a", "volumeClaimName": "theirs"},
        {"mountPath": "/b", "volumeClaimName": "adopted", "volumeClaim": SPEC},
    )
    assert (named.name, named.spec) == ("theirs", None)
    assert (both.name, both.spec) == ("adopted", SPEC)
    made = claim_objects([named, both])
    assert [obj["metadata"]["name"] for obj in made] == ["adopted"], "others make the first"


def test_a_volume_without_a_claim_is_none() -> None:
    assert claims({"mountPath": "/data"}) == []


def test_containers_mount_each_claim_once_and_init_containers_none() -> None:
    spec: dict[str, Any] = {
        "containers": [{"name": "a", "volumeMounts": [{"name": "own", "mountPath": "/own"}]},
                       {"name": "b"}],
        "initContainers": [{"name": "i"}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }  # fmt: skip
    listed = claims(
        {"mountPath": "/data", "volumeClaimName": "one"},
        {"mountPath": "/again", "volumeClaimName": "one"},
        {"mountPath": "/more", "volumeClaimName": "two"},
    )
    add_claims(spec, "j", listed)
    own, one, two = spec["volumes"]
    assert own["name"] == "own"
    assert [v["persistentVolumeClaim"]["claimName"] for v in (one, two)] == ["one", "two"]
    mounts = [
        {"name": one["name"], "mountPath": "/data"}, {"name": two["name"], "mountPath": "/more"},
    ]  # fmt: skip
    assert spec["containers"][0]["volumeMounts"][1:] == mounts
    assert spec["containers"][1]["volumeMounts"] == mounts
    assert "volumeMounts" not in spec["initContainers"][0]
