"""What this machine makes of the fields of a pod template, by the rows of ``field_rules``.

From them come the warnings before a run (``unsupported``) and the table in docs/local.md
(``as_markdown``).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Object
from vcjob.local.agent.field_rules import GROUPS, Rule, Verdict
from vcjob.local.node.identity import IdMaps
from vcjob.local.sandbox.granted import not_granted

_CONTAINERS = ("spec.initContainers[]", "spec.containers[]")
_TOLD_BY_SANDBOX = (
    *(".hostNetwork", ".hostPID", ".hostIPC"),
    *(".securityContext.privileged", ".securityContext.capabilities.add"),
)
_NOTHING: tuple[Any, ...] = (None, False, "", [], {})


def rule_for(field: str) -> Rule | None:
    """The rule that decides over a field of the schema; None where the table has a gap."""
    whole, below = _rules()
    if field in whole:
        return whole[field]
    while field:
        field = field.rpartition(".")[0]
        for known in (field, field.removesuffix("[]")):
            if known in below:
                return below[known]
    return None


def unsupported(template: Object, maps: IdMaps, path: Path = ()) -> list[Problem]:
    """What a pod template (or pod) asks for and does not get here, once per field.

    Warnings tell what happens instead; errors are fields that would make the pod do something else
    than asked. ``maps`` are the numbers that containers can run as, ``path`` is where the template
    stands in its document. hostPath volumes are looked at by ``volumes.host_paths``.
    """
    problems: dict[tuple[str, str], Problem] = {}
    for field, where, value in _given(template, "", ()):
        rule = rule_for(field)
        if rule is None or rule.verdict is Verdict.HONOURED or value in (*_NOTHING, *rule.same):
            continue
        if field == "spec.volumes[].emptyDir.sizeLimit" and _in_memory(template, where):
            continue
        if field not in _rules()[0] or field.endswith(_TOLD_BY_SANDBOX):
            continue  # it lies below a field that is told already, or is told by not_granted
        name = field.rpartition(".")[2]
        refused = rule.verdict is Verdict.REFUSED
        said = "is refused" if refused else "is not as on a cluster"
        problem = Problem(f"{name} {said}: {rule.text}", (*path, *where), warning=not refused)
        problems.setdefault((name, rule.text), problem)
    return [
        *problems.values(),
        *(
            Problem(sentence, path=(*path, "spec"), warning=True)
            for sentence in not_granted(template.get("spec") or {}, maps)
        ),
    ]


def _in_memory(template: Object, where: Path) -> bool:
    volume = template["spec"]["volumes"][where[2]]
    return bool(volume["emptyDir"].get("medium") == "Memory")


def _given(value: Any, field: str, where: Path) -> Iterator[tuple[str, Path, Any]]:
    """Every field that is written, as the schema names it, with its place and value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = f"{field}.{key}" if field else str(key)
            yield name, (*where, key), inner
            yield from _given(inner, name, (*where, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _given(inner, f"{field}[]", (*where, position))


@cache
def _rules() -> tuple[Mapping[str, Rule], Mapping[str, Rule]]:
    """Rules by the field they name, and those of them that cover what lies below."""
    whole = {
        field: rule
        for rules in GROUPS.values()
        for rule in rules
        for name in rule.fields
        for field in _spelled_out(name)
    }
    return whole, {field: rule for field, rule in whole.items() if not rule.alone}


def _spelled_out(name: str) -> Iterable[str]:
    if not name.startswith("C."):
        return (name,)
    return tuple(container + name.removeprefix("C") for container in _CONTAINERS)


def as_markdown() -> str:
    """The table of docs/local.md: the rows of each group."""
    lines: list[str] = []
    for group, rules in GROUPS.items():
        lines += [f"### {group}", "", "| Fields | Here | What happens |", "|---|---|---|"]
        for rule in rules:
            fields = ", ".join(f"`{_shown(field)}`" for field in rule.fields)
            lines.append(f"| {fields} | {rule.verdict.value} | {rule.text} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _shown(field: str) -> str:
    return f"containers[].{field.removeprefix('C.')}" if field.startswith("C.") else field


if __name__ == "__main__":
    print(as_markdown(), end="")
