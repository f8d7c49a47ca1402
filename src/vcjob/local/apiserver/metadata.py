"""What is wrong with an object's metadata beyond the types of its fields.

Source: Kubernetes documentation ("Annotations", "Owners and Dependents") and API reference,
"ObjectMeta".
"""

from collections.abc import Iterator

from vcjob.api.problems import Problem
from vcjob.api.types import Object

MOST_ANNOTATION_BYTES = 256 * 1024
"""That keys and values of all annotations may have together."""


def metadata_problems(metadata: Object) -> Iterator[Problem]:
    """Too large annotations and a second controller; wrong types are not looked at."""
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        texts = (text for pair in annotations.items() for text in pair if isinstance(text, str))
        if (total := sum(len(text.encode()) for text in texts)) > MOST_ANNOTATION_BYTES:
            yield Problem(
                f"annotations have {total:,} bytes together; more than "
                f"{MOST_ANNOTATION_BYTES:,} are not allowed",
                ("metadata", "annotations"),
                "kubectl apply keeps the object in an annotation: use kubectl apply --server-side "
                "for large ones",
            )
    owners = metadata.get("ownerReferences")
    if isinstance(owners, list):
        controllers = [
            f"{owner.get('kind')}/{owner.get('name')}"
            for owner in owners
            if isinstance(owner, dict) and owner.get("controller") is True
        ]
        if len(controllers) > 1:
            yield Problem(
                f"only one owner can be the controller, not {' and '.join(controllers)}",
                ("metadata", "ownerReferences"),
            )
