"""A key's texts in one, with a delimiter between them.

Texts that are null or blank are left out; blank is what consists of the whitespace Java knows. With `distinct`, texts
are lists of parts: the first one stays as it is, and of each later one come only the parts that are not there yet.
What is blank, and that nothing but blank texts give null, are rules of Paimon 2.0; in 1.4 only the empty text is left
out, and the first of such texts stays. A lone text is no merge and stays as it came, unless a compaction that looks up
older rows lifts it from level 0: it folds every new row, there and here. Rows above level 0 were told as they are, so
here they stay until a new row of their key comes; Paimon folds those too that it happens to rewrite, and tells nobody.
Where a delimiter begins as it ends (`||`), a part that ends like the delimiter begins can not be told apart once it is
joined; that is a property of the format, not of this module.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidOption
from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.merge.segments import Mask, Segments
from lakebed.types.logical import MAX_LENGTH, DataField, DataType, TypeRoot, is_root

# What Java's Character.isWhitespace holds for: not the spaces that forbid a line break, unlike elsewhere.
_WHITESPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)


class ListAgg(Aggregate):
    """Appends text after text."""

    name = "listagg"
    takes = "STRING"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        # A bounded text would sooner or later be too short.
        return is_root(data_type, TypeRoot.VARCHAR) and getattr(data_type, "length", 0) == MAX_LENGTH

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        super().check(field, settings)
        if settings.distinct and not settings.list_agg_delimiter:
            raise InvalidOption(
                f"column `{field.name}`: `listagg` with `distinct` has an empty delimiter, which separates nothing",
                hint=f"set `fields.{field.name}.list-agg-delimiter` to a text, or leave `distinct` out",
            )

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        texts = segments.sorted(column)
        kept, remaining = segments.only(~_is_blank(texts))
        if not len(kept):
            return pa.nulls(len(segments), column.type)
        if len(kept.order) < len(texts):
            texts = kept.sorted(column)
        if self.settings.distinct:
            joined = self._distinct(texts, kept)
        else:
            joined = self._joined(texts, kept.sizes)
        return segments.spread(joined, remaining)

    def _distinct(self, texts: pa.Array, segments: Segments) -> pa.Array:
        lists = pc.split_pattern(texts, pattern=self.settings.list_agg_delimiter)
        parts = lists.flatten()
        text_of = np.repeat(np.arange(len(texts)), np.asarray(pc.list_value_length(lists)))
        segment_of = segments.segment_of[text_of]
        is_kept = _is_first(parts, segment_of) & ~_is_blank(parts)
        is_kept |= text_of == segments.starts[segment_of]
        return self._joined(parts.filter(pa.array(is_kept)), np.bincount(segment_of[is_kept], minlength=len(segments)))

    def _joined(self, texts: pa.Array, counts: npt.NDArray[np.int64]) -> pa.Array:
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), self.settings.list_agg_delimiter)


def _is_blank(texts: pa.Array) -> Mask:
    """Null counts as blank."""
    lengths = pc.binary_length(pc.utf8_ltrim(texts, characters=_WHITESPACE))
    is_blank: Mask = np.asarray(lengths.fill_null(0)) == 0
    return is_blank


def _is_first(parts: pa.Array, segment_of: npt.NDArray[np.int64]) -> Mask:
    """Which parts stand in their segment for the first time."""
    encoded = parts.dictionary_encode()
    codes = np.asarray(encoded.indices).astype(np.int64)
    first = np.unique(segment_of * len(encoded.dictionary) + codes, return_index=True)[1]
    is_first = np.zeros(len(parts), dtype=np.bool_)
    is_first[first] = True
    return is_first
