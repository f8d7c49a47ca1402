"""The fields of every kind: from ``api/schema`` where vcjob acts on it, else from beside here."""

from collections.abc import Mapping

from vcjob.api.crd import INSTALLED
from vcjob.api.kinds import Kind
from vcjob.api.schema.support import RECORDS
from vcjob.api.schema.types import Record
from vcjob.local.apiserver.schemas import events, extensions, network, pods, surroundings

OF_KINDS: Mapping[Kind, Record] = {
    **{kind: installed.record for kind, installed in INSTALLED.items()},
    **RECORDS,
    **pods.OF_KINDS,
    **network.OF_KINDS,
    **events.OF_KINDS,
    **surroundings.OF_KINDS,
    **extensions.OF_KINDS,
}
"""The fields of every kind that is served, custom kinds aside."""
