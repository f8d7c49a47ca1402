"""What genuine Volcano made of Jobs, compared with what a blueprint makes.

The rule of comparison is told in tests/support/rendered.py.
"""

import asyncio
import copy
from typing import Any

import pytest
from rendered import (
    REGISTRY,
    RENDERED,
    DerivedNames,
    as_recorded,
    cases,
    differences,
    recorded_objects,
    without_script,
)

from vcjob.api.defaults import apply_defaults
from vcjob.api.types import Job, Object
from vcjob.controller.key_pairs import make_key_pair
from vcjob.core.blueprint import Blueprint

KEY_PAIRS = {
    name: asyncio.run(make_key_pair(algorithm))
    for name, algorithm in (("ssh-rsa", "rsa-2048"), ("ssh-ed25519", "ed25519"))
}

# Our objects that Volcano did not get to make when the recording was taken, and why.
NOT_MADE = {
    "046-volume-missing-claim": ("*", "the claim does not exist, so the job waits"),
    "055-dependson-any": ("Pod", "the first task has to run before the others are made"),
    "062-job-name-dot": ("*", "the API server refused the Service, so the job waits"),
    "065-service-name-collision": ("*", "objects of these names belong to somebody else"),
    "066-secret-collision-ssh": ("Secret", "an object of this name belongs to somebody else"),
    "067-pod-name-taken": ("Pod", "a pod of this name belongs to somebody else"),
    "075-bypass-webhooks-unknown-plugin": ("*", "the plugin is unknown, so the job waits"),
}


def blueprint_of(recording: dict[str, Any]) -> Blueprint:
    job = copy.deepcopy(recording["job"])
    job["metadata"]["uid"] = "<uid>"
    if not recording.get("undefaulted"):
        job = apply_defaults(job, requires=REGISTRY.requires)
    return Blueprint(Job.of(job), REGISTRY, KEY_PAIRS)


def objects_of(blueprint: Blueprint, recording: dict[str, Any]) -> list[Object]:
    priorities = {
        one["metadata"]["name"]: one["value"]
        for one in recording["before"]
        if one["kind"] == "PriorityClass"
    }
    return [
        *blueprint.supporting_objects(),
        blueprint.pod_group(priorities),
        *blueprint.pods(),
    ]


def test_all_recordings_are_here() -> None:
    assert len(RENDERED) == 51
    assert len(cases()) >= 37


@pytest.mark.parametrize("name", cases())
def test_a_job_becomes_what_volcano_made_of_it(name: str) -> None:
    recording = RENDERED[name]
    blueprint = blueprint_of(recording)
    names = DerivedNames(blueprint)
    all_of_it = objects_of(blueprint, recording)
    ours = {
        (obj["kind"], obj["metadata"]["name"]): obj
        for obj in (as_recorded(without_script(names.replace(one)), KEY_PAIRS) for one in all_of_it)
    }
    recorded = recorded_objects(name)
    assert not recorded.keys() - ours.keys()
    missing_kind, reason = NOT_MADE.get(name, ("", ""))
    unexpected = {key for key in ours.keys() - recorded.keys() if missing_kind not in ("*", key[0])}
    assert not unexpected, reason
    found = {
        key: list(differences(ours[key], obj, key[0], bool(recording.get("order_varies"))))
        for key, obj in recorded.items()
    }
    assert not {key: wrong for key, wrong in found.items() if wrong}
