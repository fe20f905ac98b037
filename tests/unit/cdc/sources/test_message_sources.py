"""Sources of messages: what is said of keys, schemas and formats is checked when they are made, and stays private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakebed.cdc.formats.reading import KeyForm
from lakebed.cdc.sources.files import FilesSource
from lakebed.cdc.sources.kafka import KafkaSource
from lakebed.cdc.sources.kafka.client import KafkaSettings
from lakebed.errors import InvalidArgument


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"format": "avro"}, "registry"),
        ({"format": "debezium-json", "key_format": "json"}, "key_format"),
        ({"format": "json", "key_columns": ["a"]}, "key_columns"),
        ({"format": "json", "key_format": "text"}, "one column"),
        ({"format": "json", "registry": "http://r:1"}, "registry"),
        ({"format": "avro", "registry": "http://u:secret@r:1"}, "password"),
        ({"format": "ogg"}, "`ogg`"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], part: str) -> None:
    """A format without its registry, keys that nobody looks at, and a password in an address are errors at once, which
    do not repeat the password."""
    with pytest.raises(InvalidArgument, match=part) as caught:
        KafkaSource("h:1", "t", properties={"sasl.password": "secret"}, **given)
    assert "secret" not in str(caught.value)


def test_settings_reach_tasks_as_they_are() -> None:
    """Keys and registry come out of the text that tasks get."""
    source = KafkaSource(
        "h:1", "t", format="AVRO", key_format="text", key_columns="id", registry="http://r:1", registry_auth_env="R"
    )
    settings = KafkaSettings.from_text(source.reader_options()["settings"])
    reading = settings.reading()
    assert (settings.format, settings.topics, reading.key) == ("avro", ("t",), KeyForm("text", ("id",)))
    assert reading.registry is not None
    assert (reading.registry.addresses, reading.registry.auth_env) == (["http://r:1"], "R")


def test_properties_may_tell_of_the_registry(tmp_path: Path) -> None:
    """The names of Java's clients work in the file of properties, and are not passed to the cluster's client."""
    file = tmp_path / "properties.json"
    told = {"schema.registry.url": "http://r:1", "basic.auth.user.info": "u:p", "client.id": "c"}
    file.write_text(json.dumps(told))
    source = KafkaSource("h:1", "t", format="debezium-avro", properties_file=str(file))
    assert source.settings.properties() == {"client.id": "c"}
    registry = source.settings.reading().registry
    assert registry is not None
    assert (registry.url, registry.auth_file) == ("http://r:1", str(file))


@pytest.mark.parametrize("form", ["avro", "debezium-avro"])
def test_bytes_are_no_lines(tmp_path: Path, form: str) -> None:
    """A directory of lines is not read as Avro; the error says what is."""
    with pytest.raises(InvalidArgument, match="no lines") as caught:
        FilesSource(tmp_path, form)
    assert "kafka" in caught.value.hint
