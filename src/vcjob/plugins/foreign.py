"""Plugins that other packages bring: what they do wrong ends in one sentence that names them.

Such a plugin is given copies, so that nothing it changes reaches the Job, other Jobs or pods that
are made later, and what it gives back is looked at before anybody else sees it. This guards
against mistakes. It is no wall against malice: a plugin is code, and runs with vcjob's rights.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from vcjob.api import names
from vcjob.api.kinds import SUPPORTING, Kind
from vcjob.api.problems import Problem
from vcjob.api.types import Object, all_containers
from vcjob.plugins.base import AddToPod, Argument, KeyPairNeed, Plugin, PluginError, Request
from vcjob.plugins.draft import PodDraft

Answer = TypeVar("Answer")

_ALGORITHMS = ("rsa-2048", "ed25519")


class _Wrong(Exception):
    """What a plugin says of itself or gives back is not what it must be."""


def guarded(plugin: Plugin, blame: str) -> Plugin:
    """``plugin`` with functions that raise nothing but PluginError; raises PluginError itself.

    ``blame`` is how messages call the plugin: its name and its package.
    """
    try:
        _check(plugin)
    except _Wrong as wrong:
        raise PluginError(f"{blame} is wrong: {wrong}") from wrong
    guard = _Guard(plugin, blame)
    return replace(
        plugin,
        addresses=guard.addresses,
        key_pairs=guard.key_pairs,
        problems=guard.problems,
        objects=guard.objects,
        pods=guard.pods,
    )


def _check(plugin: Plugin) -> None:
    """What can be seen without asking the plugin anything."""
    _expect(isinstance(plugin.help, str) and plugin.help, "help must be a text")
    for field in ("arguments", "requires", "kinds"):
        _expect(isinstance(getattr(plugin, field), tuple), f"{field} must be a tuple")
    for argument in plugin.arguments:
        _expect(isinstance(argument, Argument), "arguments must hold Arguments")
        name = argument.name
        readable = isinstance(name, str) and name and name[0] != "-" and not set(name) & set("= ")
        _expect(readable, f"{name!r} cannot be the name of an argument")
        known = isinstance(argument.default, bool | int | str)
        _expect(known, f"the default of --{name} must be a bool, int or str")
        fits = not argument.port or type(argument.default) is int
        _expect(fits, f"--{name} is a port, so its default must be an int")
        _expect(isinstance(argument.help, str), f"the help of --{name} must be a text")
    listed = [argument.name for argument in plugin.arguments]
    _expect(len(set(listed)) == len(listed), "two arguments have the same name")
    _expect(all(isinstance(one, str) for one in plugin.requires), "requires must hold names")
    for kind in plugin.kinds:
        allowed = ", ".join(map(str, SUPPORTING))
        _expect(kind in SUPPORTING, f"kinds has {kind}, but plugins can make only {allowed}")
    for field in ("addresses", "key_pairs", "problems", "objects", "pods"):
        _expect(callable(getattr(plugin, field)), f"{field} must be a function")


@dataclass(frozen=True)
class _Guard:
    """Asks a plugin in place of whoever wants to know."""

    plugin: Plugin
    blame: str

    def addresses(self, request: Request) -> Mapping[tuple[str, int], str]:
        return self._ask(self.plugin.addresses, request, _addresses)

    def key_pairs(self, request: Request) -> Iterable[KeyPairNeed]:
        return self._ask(self.plugin.key_pairs, request, _key_pairs)

    def problems(self, request: Request) -> Iterable[Problem]:
        return self._ask(self.plugin.problems, request, _problems)

    def objects(self, request: Request) -> Iterable[Object]:
        return self._ask(self.plugin.objects, request, self._objects)

    def pods(self, request: Request) -> AddToPod | None:
        add = self._ask(self.plugin.pods, request, _function)
        if add is None:
            return None

        def guarded_add(pod: PodDraft) -> None:
            own = PodDraft(
                pod.name,
                pod.task,
                pod.index,
                _as_json(pod.finished_spec(), "spec"),
                dict(pod.labels),
                dict(pod.annotations),
            )
            with _Blaming(self.blame):
                add(own)
                spec = _pod_spec(own)
                _check_pod(pod, own)
            pod.replace(spec, own.labels, own.annotations)

        return guarded_add

    def _ask(
        self,
        function: Callable[[Request], Any],
        request: Request,
        read: Callable[[Any], Answer],
    ) -> Answer:
        """What a function of the plugin answers; raises PluginError."""
        with _Blaming(self.blame):
            return read(function(copy.deepcopy(request)))

    def _objects(self, answer: Any) -> tuple[Object, ...]:
        return tuple(_supporting(obj, self.plugin.kinds) for obj in _items(answer, "objects"))


@dataclass(frozen=True)
class _Blaming:
    """Turns whatever a plugin does wrong into a PluginError that names it."""

    blame: str

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, _Wrong | PluginError):
            raise PluginError(f"{self.blame} failed: {error}") from error
        if isinstance(error, Exception | SystemExit):
            raise PluginError(f"{self.blame} failed: {type(error).__name__}: {error}") from error


def _expect(right: object, otherwise: str) -> None:
    if not right:
        raise _Wrong(otherwise)


def _items(answer: Any, function: str) -> Iterator[Any]:
    listed = isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping)
    _expect(listed, f"{function} gave {_shown(answer)} in place of a list")
    yield from answer


def _addresses(answer: Any) -> Mapping[tuple[str, int], str]:
    _expect(isinstance(answer, Mapping), f"addresses gave {_shown(answer)} in place of a mapping")
    for key, address in answer.items():
        match key, address:
            case (str(), int()), str():
                continue
        raise _Wrong(f"addresses must map (task, index) to a text, but has {key!r}: {address!r}")
    return dict(answer)


def _key_pairs(answer: Any) -> tuple[KeyPairNeed, ...]:
    needs = tuple(_items(answer, "key_pairs"))
    for need in needs:
        _expect(isinstance(need, KeyPairNeed), f"key_pairs gave {_shown(need)}")
        known = need.algorithm in _ALGORITHMS
        _expect(known, f"key_pairs wants the algorithm {need.algorithm!r}, which is unknown")
    return needs


def _problems(answer: Any) -> tuple[Problem, ...]:
    found = tuple(_items(answer, "problems"))
    for problem in found:
        right = (
            isinstance(problem, Problem)
            and isinstance(problem.message, str)
            and isinstance(problem.hint, str)
            and isinstance(problem.path, tuple)
            and all(isinstance(part, str | int) for part in problem.path)
        )
        _expect(right, f"problems gave {_shown(problem)} in place of a Problem")
    return found


def _supporting(obj: Any, kinds: tuple[Kind, ...]) -> Object:
    _expect(isinstance(obj, dict), f"objects gave {_shown(obj)} in place of an object")
    matching = [
        kind
        for kind in kinds
        if (kind.api_version, kind.kind) == (obj.get("apiVersion"), obj.get("kind"))
    ]
    what = f"{obj.get('apiVersion')} {obj.get('kind')}"
    _expect(matching, f"objects gave an object of the kind {what}, which kinds does not name")
    metadata = obj.get("metadata")
    named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
    _expect(named and metadata["name"], f"objects gave a {matching[0]} without metadata.name")
    for field in ("labels", "annotations"):
        texts = _are_texts(metadata.get(field) or {})
        _expect(texts, f"metadata.{field} of {matching[0]} {metadata['name']} must hold texts")
    return _as_json(obj, f"{matching[0]} {metadata['name']}")


def _function(answer: Any) -> AddToPod | None:
    right = answer is None or callable(answer)
    _expect(right, f"pods gave {_shown(answer)} in place of a function")
    add: AddToPod | None = answer
    return add


def _pod_spec(pod: PodDraft) -> Object:
    spec = _as_json(pod.finished_spec(), "the pod's spec")
    _expect(
        all(isinstance(one, dict) for one in all_containers(spec)), "containers must be objects"
    )
    return spec


def _check_pod(before: PodDraft, after: PodDraft) -> None:
    for field in ("labels", "annotations"):
        there, now = getattr(before, field), getattr(after, field)
        _expect(_are_texts(now), f"{field} of pod {before.name} must map texts to texts")
        for key, value in there.items():
            kept = not key.startswith(names.VOLCANO_PREFIX) or now.get(key) == value
            _expect(kept, f"it changed {key}, by which the pod {before.name} is found")


def _are_texts(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(key, str) and isinstance(value, str) for key, value in values.items()
    )


def _as_json(obj: Object, what: str) -> Object:
    """A copy that shares nothing; raises _Wrong if it is not JSON."""
    try:
        text = msgspec.json.encode(obj)
    except (TypeError, ValueError, RecursionError) as error:
        raise _Wrong(f"{what} cannot be written as JSON: {error}") from error
    copied: Object = msgspec.json.decode(text)
    return copied


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
