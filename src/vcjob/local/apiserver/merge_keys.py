"""Which lists are merged item by item, and by which fields: for strategic merge patches and for
server-side apply. It comes from the schema tables; what they do not name is replaced as a whole.

Source: Kubernetes documentation, "Update API Objects in Place Using kubectl patch" (merge keys) and
"Server-Side Apply" (list types).
"""

from vcjob.api.schema.types import ANYTHING, Field, ListOf, MapOf, Record, Type

_SETS = ("finalizers",)
# Keys of lists that the schema does not hold to be distinct, but that are merged by them.
_MORE_KEYS = {"ownerReferences": ("uid",), "conditions": ("type",), "managedFields": ()}


def field_type(kind: Type, name: str) -> Type:
    """The type of the field ``name`` below a value of type ``kind``; ANYTHING if not known."""
    if isinstance(kind, Record):
        known = kind.fields.get(name)
        if isinstance(known, Field):
            keys = _MORE_KEYS.get(name, ())
            if keys and isinstance(known.type, ListOf) and not known.type.keys:
                return ListOf(known.type.item, keys)
            return known.type
    if isinstance(kind, MapOf):
        return kind.value
    return ANYTHING


def item_type(kind: Type) -> Type:
    """The type of the items of a list."""
    return kind.item if isinstance(kind, ListOf) else ANYTHING


def keys_of(kind: Type) -> tuple[str, ...]:
    """The fields by which items of a list are the same; empty for lists that are one value."""
    return kind.keys if isinstance(kind, ListOf) and isinstance(kind.item, Record) else ()


def is_set(name: str, kind: Type) -> bool:
    """Whether a list is a set of texts."""
    return name in _SETS and isinstance(kind, ListOf)


def default_of(kind: Type, key: str) -> object:
    """What an item is taken to have as its key where it names none."""
    item = item_type(kind)
    known = item.fields.get(key) if isinstance(item, Record) else None
    if known is not None and known.default is not None:
        return known.default
    return "TCP" if key == "protocol" else None
