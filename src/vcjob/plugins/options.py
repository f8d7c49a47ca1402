"""Options that users give a plugin by annotations of ours on the Job.

Volcano stops reading a plugin's arguments at the first that it does not know, and ignores foreign
annotations; so what Volcano does not have is an annotation, and manifests stay portable.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from vcjob.api.problems import Path, Problem, errors, format_path
from vcjob.api.schema import network_peers
from vcjob.api.schema.readable import readable_part
from vcjob.api.types import Job, Object
from vcjob.api.validation import annotation_key, label_value, qualified_name

Wanted = TypeVar("Wanted")


def option_path(key: str) -> Path:
    """Where an option stands in the Job."""
    return ("metadata", "annotations", key)


def switch(job: Job, key: str) -> bool:
    """Whether the option is switched on. Anything but ``"true"`` is off."""
    return job.metadata.annotations.get(key) == "true"


def switch_problems(job: Job, key: str) -> Iterator[Problem]:
    """A switch is "true" or "false"."""
    if job.metadata.annotations.get(key, "false") not in ("true", "false"):
        yield Problem(f'{key} must be "true" or "false"', option_path(key))


def text_map(job: Job, key: str) -> dict[str, str]:
    """A JSON object of texts; empty if the option is absent or cannot be read."""
    return _decoded(job, key, dict[str, str]) or {}


def label_problems(job: Job, key: str) -> Iterator[Problem]:
    """What is wrong with an option that holds labels."""
    yield from _map_problems(job, key, qualified_name, label_value)


def annotation_problems(job: Job, key: str) -> Iterator[Problem]:
    """What is wrong with an option that holds annotations."""
    yield from _map_problems(job, key, annotation_key, lambda _: "")


def peers(job: Job, key: str) -> list[Object]:
    """A JSON list of NetworkPolicy peers; those that cannot be read are left out."""
    return [
        readable_part(peer, network_peers.POLICY_PEER)
        for peer in _decoded(job, key, list[Object]) or []
        if not errors(network_peers.peer_problems(peer))
    ]


def peer_problems(job: Job, key: str) -> Iterator[Problem]:
    """What is wrong with an option that holds NetworkPolicy peers."""
    decoded = _decoded(job, key, list[Object])
    if decoded is None and key in job.metadata.annotations:
        hint = '[{"namespaceSelector": {"matchLabels": {"team": "a"}}}]'
        yield Problem(f"{key} must be a JSON list of objects", option_path(key), f"such as {hint}")
    for position, peer in enumerate(decoded or []):
        for problem in errors(network_peers.peer_problems(peer)):
            within = format_path(problem.path)
            place = f"{key}[{position}]{'.' if within else ''}{within}"
            yield Problem(f"{place}: {problem.message}", option_path(key), problem.hint)


def map_problem(job: Job, key: str) -> Problem | None:
    """What is wrong with the form of an option that holds a JSON object of texts."""
    if key not in job.metadata.annotations or _decoded(job, key, dict[str, str]) is not None:
        return None
    return Problem(
        f"{key} must be a JSON object whose values are texts",
        option_path(key),
        'such as {"key": "value"}',
    )


def _map_problems(
    job: Job, key: str, wrong_key: Callable[[str], str], wrong_value: Callable[[str], str]
) -> Iterator[Problem]:
    if problem := map_problem(job, key):
        yield problem
    for name, value in text_map(job, key).items():
        if wrong := wrong_key(name):
            yield Problem(f'{key}: the key "{name}" must {wrong}', option_path(key))
        if wrong := wrong_value(value):
            yield Problem(f'{key}: the value "{value}" must {wrong}', option_path(key))


def _decoded(job: Job, key: str, wanted: type[Wanted]) -> Wanted | None:
    text = job.metadata.annotations.get(key)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=wanted)
    except msgspec.MsgspecError:
        return None
