"""What a plugin is: one file with one ``PLUGIN``, or an entry point of the group ``vcjob.plugins``.

A plugin is data and pure functions over a ``Request``: no I/O, no clock, no randomness. What it
needs beyond the Job (keys) it names; the controller supplies it. A minimal plugin::

    def _pods(request: Request) -> AddToPod:
        entry = {"name": "GREETING", "value": request.text("greeting")}

        def add(pod: PodDraft) -> None:
            for container in pod.all_containers():
                container.add_env([entry])

        return add

    PLUGIN = Plugin(
        name="greet",
        help="Greets every container.",
        arguments=(Argument("greeting", "hello", "what GREETING says"),),
        pods=_pods,
    )
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import Kind
from vcjob.api.problems import Path, Problem
from vcjob.api.types import Job, Object
from vcjob.plugins.arguments import Argument, Value
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.hosts import JobHosts

__all__ = ["AddToPod", "Argument", "KeyPair", "KeyPairNeed", "Plugin", "PluginError", "Request"]


class PluginError(VcjobError):
    """A plugin that does not exist, cannot be imported, or fails."""


class KeyPair(msgspec.Struct, frozen=True):
    """A private key (PEM text) and its public key (one line, ending in a newline)."""

    private: str
    public: str

    def __repr__(self) -> str:
        return "KeyPair(...)"  # a key never shows in a log or traceback


class KeyPairNeed(msgspec.Struct, frozen=True):
    """A key pair that a plugin wants to be given under ``name``.

    The controller makes it once per Job and finds it again in the Secret ``secret`` of the Job,
    under the keys ``private_key`` and ``public_key``. ``algorithm`` is ``rsa-2048`` or ``ed25519``.
    """

    name: str
    algorithm: str
    secret: str
    private_key: str
    public_key: str


@dataclass(frozen=True)
class Request:
    """What a plugin is asked about: one Job, its arguments for the plugin, its hosts, its keys.

    ``arguments`` holds a value for every argument that the plugin names. ``path`` is where the
    plugin stands in the Job. ``hosts`` is shared by all plugins of the Job.
    """

    job: Job
    path: Path
    arguments: Mapping[str, Value]
    hosts: JobHosts
    key_pairs: Mapping[str, KeyPair] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The value of a string argument."""
        return str(self.arguments[name])

    def number(self, name: str) -> int:
        """The value of an int argument."""
        return int(self.arguments[name])

    def switch(self, name: str) -> bool:
        """The value of a bool argument."""
        return bool(self.arguments[name])

    def key_pair(self, need: KeyPairNeed) -> KeyPair:
        """The key pair that was supplied for ``need``, else one that says what would stand there.

        Only rendering goes on without keys; the controller supplies all of them.
        """
        placeholder = f"({need.algorithm}: made when the Job is created)"
        return self.key_pairs.get(need.name) or KeyPair(
            f"<private key {placeholder}>", f"<public key {placeholder}>\n"
        )


AddToPod = Callable[[PodDraft], None]
"""Adds to one pod what a plugin has for it. May be asked for any pod, in any order."""


def _none(_: Request) -> Iterable[Object]:
    return ()


def _no_problems(_: Request) -> Iterable[Problem]:
    return ()


def _no_key_pairs(_: Request) -> Iterable[KeyPairNeed]:
    return ()


def _no_addresses(_: Request) -> Mapping[tuple[str, int], str]:
    return {}


def _nothing_for_pods(_: Request) -> AddToPod | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A job plugin. Everything but ``name`` and ``help`` may be left out.

    ``requires`` names plugins that defaulting adds beside it. ``kinds`` are those of its objects:
    the rights that an operator needs. ``marked`` plugins leave ``plugin-<name>`` in the Job's
    ``status.controlledResources`` for Volcano's tools.

    All functions are pure and get a ``Request``:

    * ``addresses``: what host lists show instead of a host's name, by (task, index). Asked first,
      when ``request.hosts`` still shows names only.
    * ``key_pairs``: the keys it wants to be supplied.
    * ``problems``: what is wrong with its arguments or with the Job. Errors are refused by
      ``validate`` and admission, warnings become Events. Its cost must not grow with replicas.
    * ``objects``: objects that are to exist before the first pod and until the Job is deleted.
      Namespace, owner reference and label are added to them.
    * ``pods``: a function that adds to a pod, or None. It is asked once; whatever all pods have in
      common is best made there.
    """

    name: str
    help: str
    arguments: tuple[Argument, ...] = ()
    requires: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    marked: bool = True
    addresses: Callable[[Request], Mapping[tuple[str, int], str]] = _no_addresses
    key_pairs: Callable[[Request], Iterable[KeyPairNeed]] = _no_key_pairs
    problems: Callable[[Request], Iterable[Problem]] = _no_problems
    objects: Callable[[Request], Iterable[Object]] = _none
    pods: Callable[[Request], AddToPod | None] = _nothing_for_pods
