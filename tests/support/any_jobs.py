"""Jobs as anybody might write them: valid ones, nearly valid ones, and any JSON."""

import copy
from typing import Any

from hypothesis import strategies as st

from vcjob.api.schema.containers import CONTAINER
from vcjob.api.schema.job import JOB, JOB_SPEC, TASK
from vcjob.api.schema.pods import POD_SPEC
from vcjob.api.schema.types import (
    Boolean,
    Integer,
    IntegerOrText,
    ListOf,
    MapOf,
    Quantity,
    Record,
    Text,
    Type,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["a", "b", "svc", "env", "cpu", "memory", "example.com/gpu", "my.job", "Ä"])
# A probability would need a draw a choice; one of so many is wrong.
SELDOM = st.integers(0, 15).map(lambda number: number == 0)
DEEP_ENOUGH = 12


@st.composite
def values(draw: st.DrawFn, kind: Type, depth: int = 0) -> Any:
    """A value of the type ``kind``, here and there something else."""
    if draw(SELDOM):
        return draw(JSON)
    match kind:
        case Record():
            fields = kind.fields
            wanted = {name for name, field in fields.items() if field.required}
            if depth < DEEP_ENOUGH:
                wanted |= set(draw(st.lists(st.sampled_from(sorted(fields)), max_size=4)))
            value = {name: draw(values(fields[name].type, depth + 1)) for name in sorted(wanted)}
            if draw(SELDOM):
                value[draw(NAMES)] = draw(JSON)
            return value
        case ListOf():
            return [draw(values(kind.item, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        case MapOf():
            keys = draw(st.lists(NAMES, max_size=2))
            return {key: draw(values(kind.value, depth + 1)) for key in keys}
        case Text():
            return draw(st.sampled_from(kind.one_of) if kind.one_of else NAMES | st.text())
        case Integer():
            return draw(st.integers(-1, 5) | st.integers())
        case Boolean():
            return draw(st.booleans())
        case Quantity():
            return draw(st.sampled_from(["1", 1, "500m", "-1", "1e400", "0.1", 0.5, "", "2Gi"]))
        case IntegerOrText():
            return draw(st.integers(0, 70000) | NAMES)
    return draw(JSON)


@st.composite
def nearly_valid_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A small valid Job in which one or two fields have been set to something of their type."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    task = {"name": "t", "replicas": 2, "template": {"spec": pod}}
    metadata = {"name": "j"}
    spec = {"tasks": [task, {**copy.deepcopy(task), "name": "u"}]}
    container: dict[str, Any] = pod["containers"][0]  # type: ignore[assignment]
    for _ in range(draw(st.integers(0, 2))):
        target, record = draw(
            st.sampled_from(
                [(spec, JOB_SPEC), (task, TASK), (pod, POD_SPEC), (container, CONTAINER)]
            )
        )
        name = draw(st.sampled_from(sorted(record.fields)))
        target[name] = draw(values(record.fields[name].type))  # type: ignore[index]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec,
    }


JOBS = values(JOB) | nearly_valid_jobs()
