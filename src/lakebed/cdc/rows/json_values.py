"""Values of messages without types, where the column that takes them says what they are: lists, maps and rows are JSON,
moments say their zone, bytes are in base64."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import CorruptFile, InvalidData
from lakebed.formats import FORMATS, Written
from lakebed.formats.text.columns import parsed, unspelled
from lakebed.formats.text.spelling import joined
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.cast_text import ZONED, in_utc
from lakebed.types.logical import BINARIES, STRING, AtomicType, DataField, DataType, TypeRoot, is_root

_VALUE = "v"


def is_in_json(target: DataType, *, base64: bool) -> bool:
    """Whether texts for a column of this type are to be read here, rather than cast."""
    if not isinstance(target, AtomicType):
        return not unspelled(target, nested=True, zoned=True)
    return target.root is TypeRoot.TIMESTAMP_LTZ or (base64 and target.root in BINARIES)


def from_json(texts: pa.Array, target: DataType) -> pa.Array:
    """The values of texts. A moment without a zone is one of UTC."""
    if is_root(target, TypeRoot.TIMESTAMP_LTZ):
        zoned = pc.match_substring_regex(texts, ZONED)
        if pc.any(zoned).as_py():
            texts = pc.if_else(zoned, in_utc(pc.if_else(zoned, texts, pa.scalar(None, texts.type))), texts)
        return cast_array(texts, STRING, target)
    if isinstance(target, AtomicType):
        return parsed(texts, target).cast(to_arrow_type(target))
    fields = (DataField(0, _VALUE, target),)
    # A line feed in JSON stands between words: within a text it is spelled.
    plain = pc.replace_substring_regex(texts.cast(pa.large_string()), "[\r\n]+", " ").fill_null("null")
    objects = pa.ListArray.from_arrays([0, len(plain)], joined(f'{{"{_VALUE}":', plain, "}"))
    lines = pc.binary_join(objects, pa.scalar("\n", pa.large_string()))
    source = pa.BufferReader(lines[0].as_py().encode())
    try:
        with FORMATS["json"].open_reader(source, "messages", Written(fields, {}, zoned=True)) as reader:
            parts = [batch.column(0) for _, batch in reader.read(fields)]
    except CorruptFile as error:
        raise InvalidData(f"a text is no {target}: {error.message}", hint="correct the column's type") from error
    return pa.concat_arrays([pa.nulls(0, to_arrow_type(target)), *parts])
