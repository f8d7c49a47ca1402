"""Equal parts of objects kept once: ten thousand pods of a template cost little more than what
they differ in, also where each came as a text of its own.

Objects are never changed in place, so that any two may share a part.
"""

from typing import Any

_MOST_KNOWN = 10_000  # 10,000 worker pods: 40 MB, without sharing 104


def reuse(old: Any, new: Any) -> Any:
    """``new``, with ``old`` or parts of it in the place of what is the same as JSON.

    Returns ``old`` itself if nothing differs. Neither is changed.
    """
    if new is old:
        return old
    if isinstance(new, dict) and isinstance(old, dict):
        same = len(new) == len(old)
        merged = {}
        for key, value in new.items():
            if key in old:
                merged[key] = reuse(old[key], value)
                same = same and merged[key] is old[key]
            else:
                merged[key] = value
                same = False
        return old if same else merged
    if isinstance(new, list) and isinstance(old, list):
        items = [reuse(before, now) for before, now in zip(old, new, strict=False)]
        items += new[len(items) :]
        if len(items) == len(old) and all(a is b for a, b in zip(items, old, strict=True)):
            return old
        return items
    return old if type(new) is type(old) and new == old else new


class Sharing:
    """Makes equal parts of all objects that pass through it one and the same.

    What was not met again among the latest ``most`` parts is forgotten, so memory is bounded.
    """

    def __init__(self, most: int = _MOST_KNOWN) -> None:
        self._most = most
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}
        self._known: dict[int, Any] = {}
        self._strings: dict[str, str] = {}

    def share(self, value: Any) -> Any:
        """A value equal to this one, made of parts met before where possible."""
        if isinstance(value, dict | list):
            return self._share_whole(value)
        return self._share_simple(value)

    def _share_simple(self, value: Any) -> Any:
        if type(value) is str:
            if len(self._strings) >= self._most:
                self._strings.clear()
            return self._strings.setdefault(value, value)
        if type(value) is int:  # not of bool, nor equal to a float
            return self._keep((int, value), value)
        return value

    def _share_whole(self, value: Any) -> Any:
        """Parts are told apart by identity, theirs alone while the table holds the whole."""
        if id(value) in self._known:
            return value
        known_string = self._strings.get
        parts: list[Any] = [type(value)]
        shared: Any
        if isinstance(value, dict):
            shared = {}
            for key, one in value.items():
                key = known_string(key) or self._share_simple(key)
                if type(one) is str:
                    one = known_string(one) or self._share_simple(one)
                else:
                    one = self.share(one)
                shared[key] = one
                parts += (id(key), id(one))
        else:
            shared = [self.share(one) for one in value]
            parts += map(id, shared)
        return self._keep(tuple(parts), shared)

    def _keep(self, key: Any, value: Any) -> Any:
        found = self._young.get(key)
        if found is not None:
            return found
        found = self._old.get(key)
        value = value if found is None else found
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
            self._known = {id(one): one for one in self._old.values()}
        self._young[key] = value
        self._known[id(value)] = value
        return value
