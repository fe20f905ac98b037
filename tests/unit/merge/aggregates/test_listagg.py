from __future__ import annotations

import pytest
from tests.unit.merge.aggregates.scalar_folds import Column, visible

from lakebed.errors import InvalidData, InvalidOption
from lakebed.types import logical as lt
from lakebed.types.logical import DataType

PLAIN = Column(lt.STRING, "listagg")
DISTINCT = Column(lt.STRING, "listagg", {"list-agg-delimiter": ";", "distinct": "true"})


def test_example_of_the_notes() -> None:
    """M-40: null and empty texts are left out, plain and distinct."""
    plain = [("+I", "a"), ("+I", None), ("+I", ""), ("+I", "b"), ("+I", "a")]
    assert PLAIN.after_each(*plain) == ["a", "a", "a", "a,b", "a,b,a"]
    parts = [("+I", "a;b"), ("+I", None), ("+I", ""), ("+I", "b;c"), ("+I", "a")]
    assert DISTINCT.after_each(*parts) == ["a;b", "a;b", "a;b", "a;b;c", "a;b;c"]


@pytest.mark.parametrize("column", [PLAIN, DISTINCT])
def test_blank_texts(column: Column) -> None:
    """Blank is what Java calls so; a lone blank text passes as it is, several leave null."""
    blanks = ["", " ", "\t\n\v\f\r", "\x1c\x1f", "\u1680\u2000\u2028\u2029\u3000"]
    assert column.of(*blanks[1:], "x", *blanks) == "x"
    assert column.after_each(("+I", " "), ("+I", ""), ("+I", None)) == [" ", None, None]
    assert column.of("\u00a0", " ", None) == "\u00a0"
    assert column.of("\u0085", " ") == "\u0085"


def test_texts_keep_their_blanks_and_delimiters() -> None:
    """Nothing is trimmed, and without distinct nothing is split."""
    assert PLAIN.of(" a ", "b,c", "é😀") == " a ,b,c,é😀"
    assert Column(lt.STRING, "listagg", {"list-agg-delimiter": " - "}).of("a", "b") == "a - b"
    assert Column(lt.STRING, "listagg", {"list-agg-delimiter": ""}).of("a", "b") == "ab"


def test_distinct_parts() -> None:
    """The first text stays as it is; of later ones come the parts that are new and not blank, each once."""
    assert DISTINCT.of("a;;a; ", "b;b;;a;c", "c;d; ") == "a;;a; ;b;c;d"
    assert DISTINCT.of("a", "a") == "a"
    assert DISTINCT.of("a", ";;") == "a"
    assert DISTINCT.of(" ", "b;b", "b") == "b;b"
    long = Column(lt.STRING, "listagg", {"list-agg-delimiter": "<>", "distinct": "true"})
    assert long.of("a<b", "c>d<>a<b", "a") == "a<b<>c>d<>a"


def test_keys_do_not_mix() -> None:
    """What one key has seen is new to another."""
    rows = DISTINCT.rows([2, 1, 2, 1, 3, 2, 4, 4], ["+I"] * 8, ["x", "y", "y;x", "x;y", "y", "z", "", None])
    assert visible(DISTINCT.merged(rows)) == ["y;x", "x;y;z", "y", None]


def test_many_keys() -> None:
    """Texts follow in the order of their arrival in every one of many keys."""
    rows = [(number * 37 % 1000, str(number)) for number in range(3000)]
    expected: dict[int, list[str]] = {}
    for key, text in rows:
        expected.setdefault(key, []).append(text)
    keys, texts = zip(*rows, strict=True)
    merged = PLAIN.merged(PLAIN.rows(keys, ["+I"] * len(keys), texts))
    assert merged.column("v").to_pylist() == [",".join(expected[key]) for key in sorted(expected)]


def test_retracts() -> None:
    """A text can not be taken back, unless retracts are ignored."""
    with pytest.raises(InvalidData, match=r"`v`.*`listagg` can not take back"):
        PLAIN.after_each(("+I", "a"), ("-U", "a"))
    ignoring = Column(lt.STRING, "listagg", {"ignore-retract": "true"})
    assert ignoring.after_each(("+I", "a"), ("-U", "a"), ("+U", "b")) == ["a", "a", "a,b"]


@pytest.mark.parametrize("data_type", [lt.varchar(100), lt.char(3), lt.BYTES, lt.INT], ids=str)
def test_other_types_are_refused(data_type: DataType) -> None:
    """Only text without a bound can take any number of texts."""
    column = Column(data_type, "listagg")
    with pytest.raises(InvalidOption, match="`listagg` does not take column `v`"):
        column.engine.check(column.setup, "t")


def test_distinct_needs_a_delimiter() -> None:
    """An empty delimiter splits nothing, so distinct is refused with it."""
    column = Column(lt.STRING, "listagg", {"distinct": "true", "list-agg-delimiter": ""})
    with pytest.raises(InvalidOption, match=r"`v`.*empty delimiter"):
        column.engine.check(column.setup, "t")
