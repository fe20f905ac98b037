"""Options as keywords of a call."""

from __future__ import annotations

import pytest

from lakebed.definition.arguments import options_by_keyword
from lakebed.errors import InvalidOption
from lakebed.options.option import FieldOption
from lakebed.options.table import OPTIONS


def test_every_option_has_a_keyword_of_its_own() -> None:
    """Dots and dashes as underscores lead back to each option, and no two options share a keyword."""
    keys = [option.key for option in OPTIONS if not isinstance(option, FieldOption)]
    spelled = {key.replace(".", "_").replace("-", "_"): key for key in keys}
    assert options_by_keyword(dict.fromkeys(spelled, "x")) == dict.fromkeys(keys, "x")


def test_other_spellings() -> None:
    """Keys stand for themselves, older names and words apart are understood, None is not given."""
    given = {
        "scan.mode": "latest",
        "log_scan_timestamp_millis": 3,
        "read_stream_max_files_per_trigger": 1,
        "branch": None,
    }
    assert options_by_keyword(given) == {
        "scan.mode": "latest",
        "scan.timestamp-millis": 3,
        "read.stream.maxFilesPerTrigger": 1,
    }


def test_unknown_keywords_are_refused() -> None:
    """A keyword that stands for nothing is named, with the nearest that does."""
    with pytest.raises(InvalidOption, match="`scan_mod`") as caught:
        options_by_keyword({"scan_mod": "latest"})
    assert "scan_mode" in caught.value.hint
