"""JSON merge patches (RFC 7386) that share with the old object whatever they leave alone."""

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` applied. Neither is changed; what is the same is shared.

    Returns ``target`` itself if the patch changes nothing.
    """
    if not isinstance(patch, dict):
        return target if _same(target, patch) else patch
    if not isinstance(target, dict):
        return {key: merge_patch(None, value) for key, value in patch.items() if value is not None}
    changed: dict[str, Any] | None = None
    for key, value in patch.items():
        if value is None:
            if key in target:
                changed = dict(target) if changed is None else changed
                del changed[key]
            continue
        old = target.get(key)
        new = merge_patch(old, value)
        if new is not old or key not in target:
            changed = dict(target) if changed is None else changed
            changed[key] = new
    return target if changed is None else changed


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: True is not 1."""
    return type(one) is type(other) and bool(one == other)
