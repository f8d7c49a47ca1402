"""Which container a program is run in where none is named."""

import pytest

from vcjob.cli.execute import first_container

ANNOTATION = "kubectl.kubernetes.io/default-container"


@pytest.mark.parametrize(
    ("annotations", "chosen"),
    [
        (None, "main"),
        ({"other": "beside"}, "main"),
        ({ANNOTATION: "beside"}, "beside"),
        ({ANNOTATION: "before"}, "main"),  # an init container has ended long ago
        ({ANNOTATION: "nobody"}, "main"),
        ({ANNOTATION: ""}, "main"),
    ],
)
def test_the_annotated_container_is_meant_else_the_first(
    annotations: dict[str, str] | None, chosen: str
) -> None:
    spec = {
        "initContainers": [{"name": "before"}],
        "containers": [{"name": "main"}, {"name": "beside"}],
    }

    assert first_container({"metadata": {"annotations": annotations}, "spec": spec}) == chosen
