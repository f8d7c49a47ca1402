"""What the packet filter has to hold, and how that differs from what was last taken."""

import msgspec

from vcjob.local.network.rules import (
    GROUP_MAPS,
    POD_MAPS,
    Chain,
    Element,
    Key,
    SetKind,
    Update,
)

_FRAME = {
    **dict.fromkeys(POD_MAPS.values(), SetKind.ADDRESSES),
    **dict.fromkeys(GROUP_MAPS.values(), SetKind.GROUPS),
}
"""Maps that are there from the start, and stay."""


class _Elements(msgspec.Struct):
    kind: SetKind
    now: dict[Key, str] = {}
    """The chain that each key leads to, "" in a plain set."""
    before: dict[Key, str | None] = {}
    """What the keys changed since the last update led to, None: they were not there."""


class Changes:
    """Sets, chains and elements by name. Whoever uses it adds sets before their elements."""

    def __init__(self) -> None:
        self._sets = {name: _Elements(kind) for name, kind in _FRAME.items()}
        self._taken_sets = set(self._sets)
        self._touched_sets: set[str] = set()
        self._chains: dict[str, Chain] = {}
        self._taken_chains: set[str] = set()
        self._touched_chains: set[str] = set()
        self._touched_elements: set[str] = set()

    def add_set(self, name: str, kind: SetKind) -> None:
        """Want an empty set. Its name was never one before."""
        self._sets[name] = _Elements(kind)
        self._touched_sets.add(name)

    def remove_set(self, name: str) -> None:
        """Want a set no longer, nor its elements."""
        del self._sets[name]
        self._touched_sets.add(name)

    def add_chain(self, name: str, chain: Chain) -> None:
        """Want a chain. A name always means the same content."""
        self._chains[name] = chain
        self._touched_chains.add(name)

    def remove_chain(self, name: str) -> None:
        """Want a chain no longer."""
        del self._chains[name]
        self._touched_chains.add(name)

    def chain_of(self, name: str, key: Key) -> str:
        """The chain that a map leads a key to, "" for none."""
        return self._sets[name].now.get(key, "")

    def set(self, name: str, key: Key, chain: str = "") -> None:
        """Want an element."""
        elements = self._sets[name]
        elements.before.setdefault(key, elements.now.get(key))
        elements.now[key] = chain
        self._touched_elements.add(name)

    def unset(self, name: str, key: Key) -> None:
        """Want an element no longer, if it is there."""
        elements = self._sets[name]
        if key in elements.now:
            elements.before.setdefault(key, elements.now[key])
            del elements.now[key]
            self._touched_elements.add(name)

    def take(self) -> Update:
        """The difference from the last call to now."""
        gone, new = self._element_changes()
        update = Update(
            new_sets=tuple(
                (name, self._sets[name].kind)
                for name in sorted(self._touched_sets)
                if name in self._sets and name not in self._taken_sets
            ),
            new_chains=tuple(
                (name, self._chains[name])
                for name in sorted(self._touched_chains)
                if name in self._chains and name not in self._taken_chains
            ),
            gone_elements=gone,
            new_elements=new,
            gone_chains=tuple(
                name
                for name in sorted(self._touched_chains)
                if name in self._taken_chains and name not in self._chains
            ),
            gone_sets=tuple(
                name
                for name in sorted(self._touched_sets)
                if name in self._taken_sets and name not in self._sets
            ),
        )
        for touched, wanted, taken in (
            (self._touched_sets, self._sets.keys(), self._taken_sets),
            (self._touched_chains, self._chains.keys(), self._taken_chains),
        ):
            taken |= touched & wanted
            taken -= touched - wanted
            touched.clear()
        return update

    def _element_changes(self) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
        gone: list[Element] = []
        new: list[Element] = []
        # Maps last: a pod is isolated only when what it may do has been filled in.
        for name in sorted(self._touched_elements, key=lambda name: (name in _FRAME, name)):
            elements = self._sets.get(name)
            if elements is None:
                continue
            for key, before in elements.before.items():
                now = elements.now.get(key)
                if before != now:
                    if before is not None:
                        gone.append(Element(name, elements.kind, key, before))
                    if now is not None:
                        new.append(Element(name, elements.kind, key, now))
            elements.before.clear()
        self._touched_elements.clear()
        return tuple(gone), tuple(new)
