import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.manifest import MOST_BYTES, parse
from vcjob.api.problems import Problem

JOB = """\
# a comment
kind: Job
metadata: {name: j, labels: {a: b}}
spec:
  tasks:
  - name: a
    replicas: 1
  -
    name: b
"""


def only_problem(text: str | bytes) -> Problem:
    (problem,) = parse(text, "f").problems
    assert problem.file == "f"
    return problem


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (2, 1)),
        (("kind",), (2, 1)),
        (("metadata", "labels", "a"), (3, 30)),
        (("spec", "tasks", 0), (6, 5)),
        (("spec", "tasks", 0, "replicas"), (7, 5)),
        (("spec", "tasks", 1, "name"), (9, 5)),
        (("spec", "tasks", 1, "missing", 3), (9, 5)),
        (("spec", "tasks", 7), (5, 3)),
        (("spec", 0), (4, 1)),
    ],
)
def test_every_part_knows_where_it_stands(
    path: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    (document,) = parse(JOB).documents
    assert document.locate(path) == place


def test_problems_are_placed_in_file_and_document() -> None:
    documents = parse("a: 1\n---\nb: 2\n", "f.yaml").documents
    placed = documents[1].place(Problem("wrong", ("b",)))
    assert (placed.file, placed.document, placed.line, placed.column) == ("f.yaml", 1, 3, 1)


def test_several_documents_and_empty_ones() -> None:
    manifest = parse("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n")
    assert [(d.index, d.object) for d in manifest.documents] == [(0, {"a": 1}), (3, {"b": 2})]
    assert manifest.problems == ()


def test_items_of_a_list_are_documents_with_their_own_positions() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  x: 1\n- kind: List\n  items: []\n- 3\n"
    manifest = parse(text)
    assert [d.object["kind"] for d in manifest.documents] == ["A", "List"]
    assert manifest.documents[0].locate(("x",)) == (5, 3)
    assert "this is a number" in manifest.problems[0].message


def test_json_is_read_with_positions_and_characters_beyond_the_basic_plane() -> None:
    text = json.dumps({"kind": "😀", "b": [1.0, 2.5, None]}, indent="\t")
    (document,) = parse(text).documents
    assert document.object == {"kind": "😀", "b": [1, 2.5, None]}
    assert document.locate(("b", 1)) == (5, 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {q: 1}\nb: *x\n", {"a": {"q": 1}, "b": {"q": 1}}),
        ("a: &x {q: 1, r: 2}\nb: {<<: *x, r: 3}\n", {"a": {"q": 1, "r": 2}, "b": {"q": 1, "r": 3}}),
        ("a: {<<: [{p: 1}, {p: 2, q: 3}]}\n", {"a": {"p": 1, "q": 3}}),
        ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
        ("&k a: 1\nb: {*k : 2}\n", {"a": 1, "b": {"a": 2}}),
    ],
)
def test_aliases_and_merges_are_written_out(text: str, value: object) -> None:
    (document,) = parse(text).documents
    assert document.object == value


def test_what_aliases_stand_for_is_not_shared() -> None:
    (document,) = parse("a: &x [1]\nb: *x\n").documents
    document.object["a"].append(2)
    assert document.object["b"] == [1]


def test_a_merged_key_stands_where_it_was_written() -> None:
    (document,) = parse("a: &x\n  q: 1\nb:\n  <<: *x\n").documents
    assert document.locate(("b", "q")) == (2, 3)


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no object"),
        ("# only a comment\n---\n", "holds no object"),
        ("just text", "this is a text"),
        ("- 1\n- 2\n", "this is a list"),
        (b"\x7fELF\x02\x00\x01", "U+007F"),
        (b"a: \x00", "U+0000"),
        (b"a: \xff", "not text in UTF-8"),
        (b"\xff\xfea", "not text in UTF-8"),
        ("a: \ud800", "U+D800"),
        (b"a" * (MOST_BYTES + 1), "more than 4 MiB"),
        (laughs(12), "too big"),
        ("- a\n" * 250_000, "too big"),
        ("[" * 90 + "\n" + "- " * 200, "not YAML"),
        ("- " * 200, "deeper than 100"),
        ("[" * 5000, "nest"),
        ("a: &a [*a]", "contains itself"),
        ("a: *b", "not defined"),
        ("a: !mine x", "no meaning"),
        ("a: !!set {x}", "no meaning"),
        ("a: .inf", "not a number"),
        ("? [a]\n: b", "a key must be a text"),
        ("{{ .Values.x }}: 1", "a key must be a text"),
        ("~: 1", "a key must not be empty"),
        ("<<: 3", "<< takes an object"),
        ("a: 1\na: 2", "given twice"),
    ],
)
def test_what_cannot_be_read_is_one_clear_problem(text: str | bytes, says: str) -> None:
    problem = only_problem(text)
    assert says in problem.message
    assert not problem.warning
    assert problem.line >= 1
    assert problem.column >= 1


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("a:\n\tb: 1", 2, "spaces"),
        ("a: b: c", 1, "quotes"),
        ("a: 'x", 1, "opened and not closed"),
        ("a: @x", 1, "quotes"),
        ("a: [1, 2\nb: 3", 2, "bracket"),
        ("a:\n  - 1\n b: 2", 3, "indentation"),
        ("a: {{ .Values.b }}\nc: - d", 1, "template"),
        ('a: "\\d"', 1, "backslash"),
        ("a: 1\nb\nc: 1", 3, "': '"),
    ],
)
def test_syntax_errors_come_with_line_and_advice(text: str, line: int, advice: str) -> None:
    problem = only_problem(text)
    assert problem.line == line
    assert advice in problem.hint


def test_documents_behind_a_broken_one_are_read_nevertheless() -> None:
    manifest = parse("a: 1\n---\nb: [\n---\nc: 3\nc: 4\n---\n@\n---\nd: 5\n")
    assert [(d.index, d.object, d.locate(())) for d in manifest.documents] == [
        (0, {"a": 1}, (1, 1)),
        (2, {"c": 4}, (5, 1)),
        (4, {"d": 5}, (10, 1)),
    ]
    assert [(p.document, p.line) for p in manifest.problems] == [(1, 4), (2, 6), (3, 8)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_are_understood(encoding: str) -> None:
    (document,) = parse("a: é\n".encode(encoding)).documents
    assert document.object == {"a": "é"}


@given(st.binary() | st.text())
def test_the_parser_never_raises(text: bytes | str) -> None:
    manifest = parse(text)
    assert manifest.documents or manifest.problems


YAML_PARTS = (
    *("a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", ", ", "&x ", "*x", "<<", "'", '"'),
    *("---\n", "| ", "> ", "!!str ", "!y ", "? ", "# ", "\t", "1", "~", "%", "...\n", "\u2028"),
)
YAMLISH = st.lists(st.sampled_from(YAML_PARTS), max_size=40).map("".join)


@given(YAMLISH)
def test_the_parser_never_raises_on_what_looks_like_yaml(text: str) -> None:
    for document in parse(text).documents:
        line, column = document.locate(("a", 0, "a"))
        assert line >= 1
        assert column >= 1


# YAML takes no key of more than 1,024 characters, and an escape has up to twelve.
KEYS = st.text(max_size=60)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, JSON_VALUES, min_size=1))
def test_json_objects_come_out_as_they_went_in(value: dict[str, object]) -> None:
    if value.get("kind") == "List":
        return
    (document,) = parse(json.dumps(value)).documents
    assert document.object == value
