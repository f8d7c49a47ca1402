"""Schemas of custom kinds: whatever is admitted as one can be used, with whatever objects."""

from hypothesis import assume, given
from hypothesis import strategies as st

from vcjob.api.problems import errors
from vcjob.api.schema.fields import check_fields
from vcjob.local.apiserver.structural import completed, default_problems, faults, schema_problems
from vcjob.local.apiserver.structural_types import JSON_SCHEMA, record_of
from vcjob.local.apiserver.unknown_fields import pruned, unknown_fields

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "a", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
SOUND = {
    "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean"]),
    "nullable": st.booleans(),
    "enum": st.lists(VALUES, max_size=2),
    "minimum": st.integers(-2, 2) | st.just(0.5),
    "exclusiveMinimum": st.booleans(),
    "maximum": st.integers(-2, 2),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "maxProperties": st.integers(0, 2),
    "pattern": st.sampled_from(["^a", "(", r"\p{L}"]),
    "required": st.lists(NAMES, max_size=2),
    "uniqueItems": st.booleans(),
    "default": VALUES,
    "x-kubernetes-int-or-string": st.booleans(),
    "x-kubernetes-preserve-unknown-fields": st.booleans(),
    "x-kubernetes-embedded-resource": st.booleans(),
    "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
    "x-kubernetes-list-map-keys": st.lists(NAMES, max_size=2),
}


def schemas(parts):
    def nested(inner):
        more = {
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "additionalProperties": inner | st.booleans(),
            "items": inner,
            "not": inner,
            **{key: st.lists(inner, max_size=2) for key in ("allOf", "anyOf", "oneOf")},
        }
        return st.fixed_dictionaries({}, optional={**parts, **more})

    return st.recursive(st.fixed_dictionaries({}, optional=parts), nested, max_leaves=4)


# Now and then a keyword has a value that it cannot have.
ANY = schemas({name: st.one_of(taken, taken, taken, VALUES) for name, taken in SOUND.items()})


def use(schema, value):
    list(faults(value, schema))
    record = record_of("Any", schema)
    if record is not None:
        list(unknown_fields(value, record))
        pruned(value, record)
    return completed(value, schema)


@given(schemas(SOUND), VALUES)
def test_sound_schemas_are_admitted_and_complete_once(schema, value):
    assert errors(check_fields(schema, JSON_SCHEMA)) == []
    assert errors(list(schema_problems(schema))) == []
    once = use(schema, value)
    assert completed(once, schema) == once


@given(ANY, VALUES)
def test_whatever_is_admitted_can_be_used(schema, value):
    assume(not errors(check_fields(schema, JSON_SCHEMA)))
    assume(not errors(list(schema_problems(schema))))
    list(default_problems(schema))
    use(schema, value)
