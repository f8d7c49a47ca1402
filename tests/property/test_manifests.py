"""`render` and `validate` answer for whatever JSON stands in a manifest, and never raise."""

import json
from typing import Any

from any_jobs import JOBS, JSON
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.cli.render import render
from vcjob.cli.validate import validate

KINDS = st.sampled_from(
    [
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "List"),
    ]
)
FIELDS = st.sampled_from(["metadata", "spec", "data", "items", "value"])
METADATA = st.dictionaries(
    st.sampled_from(["name", "namespace", "generateName", "uid", "labels", "annotations"]), JSON
)


@st.composite
def objects(draw: st.DrawFn) -> Any:
    """An object of a kind that we read, with anything in its fields."""
    group, kind = draw(KINDS)
    body = draw(JOBS | st.dictionaries(FIELDS, JSON))
    if isinstance(body, dict) and draw(st.booleans()):
        body |= {"metadata": draw(METADATA | JSON)}
    return {**(body if isinstance(body, dict) else {}), "apiVersion": group, "kind": kind}


@given(st.lists(objects() | JSON, max_size=2))
@settings(max_examples=300, deadline=None)
def test_any_manifest_is_answered(documents: list[Any]) -> None:
    text = "\n---\n".join(map(json.dumps, documents))
    for command in (render, validate):
        result = CliRunner().invoke(command, ["-o", "json", "-"], text, standalone_mode=False)
        assert result.exception is None, (command.name, text)
        assert result.return_value in {0, 3}
        json.loads(result.stdout)
