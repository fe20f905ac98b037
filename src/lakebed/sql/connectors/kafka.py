"""`kafka`: topics with messages of rows, or of changes. Options have Flink's names."""

from __future__ import annotations

from typing import Final

from lakebed.errors import InvalidOption, InvalidSchema
from lakebed.options import CSV_FIELD_DELIMITER, JSON_IGNORE_PARSE_ERRORS
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import TRUTH, ConnectorOption, refused
from lakebed.sql.connectors.table import ConnectorTable

CHANGE_FORMATS: Final = ("debezium-json", "canal-json", "maxwell-json")
"""Messages that tell changes of rows; they need a key to land."""
ROW_FORMATS: Final = ("json", "csv")
"""Messages that are rows."""
_STARTS = ("earliest-offset", "latest-offset")
_OFFSETS = "use `earliest-offset` or `latest-offset`; offsets are kept by the pipeline, not by a group"

_OPTIONS = (
    ConnectorOption("topic", "the topic, or several with `;` between them", is_required=True),
    ConnectorOption("properties.bootstrap.servers", "where the cluster is", is_required=True),
    ConnectorOption("format", "what a message is", choices=(*ROW_FORMATS, *CHANGE_FORMATS)),
    ConnectorOption("value.format", "the same", choices=(*ROW_FORMATS, *CHANGE_FORMATS)),
    ConnectorOption("scan.startup.mode", "where to begin", default="earliest-offset", choices=_STARTS),
    ConnectorOption("properties.group.id", "taken, and of no effect: offsets are kept with the rows"),
    ConnectorOption("properties.auto.offset.reset", "taken, and of no effect: a lost offset is an error"),
    ConnectorOption("properties.*", "any property of the client, such as `properties.security.protocol`"),
    ConnectorOption(JSON_IGNORE_PARSE_ERRORS.key, "leave out messages that can not be read", TRUTH, default="false"),
    ConnectorOption("json.fail-on-missing-field", "`false`: what is missing is null", TRUTH, choices=("false",)),
    ConnectorOption(CSV_FIELD_DELIMITER.key, "what stands between values", default=","),
    ConnectorOption("csv.ignore-parse-errors", "leave out messages that can not be read", TRUTH, default="false"),
    ConnectorOption("debezium-json.schema-include", "messages may bring their schema", TRUTH, default="false"),
    ConnectorOption("debezium-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("canal-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("maxwell-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("landing.*", "an option of the table of the lake that messages land in"),
    refused("topic-pattern", "name the topics in `topic`, with `;` between them"),
    refused("scan.startup.*", _OFFSETS),
    refused("scan.bounded.*", "leave it out: a pipeline with --once ends when it has caught up"),
    refused("scan.topic-partition-discovery.interval", "leave it out: partitions are looked for at each step"),
    refused("key.*", "leave it out: columns come from the value of a message"),
    refused("value.fields-include", "leave it out: columns come from the value of a message"),
    refused("sink.*", "topics are read, not written"),
)
METADATA = ("topic", "partition", "offset", "timestamp", "timestamp-type", "key")
"""What is known of every message."""
CHANGE_METADATA = ("database_name", "schema_name", "table_name", "op_ts", "topic", "partition", "offset", "timestamp")
"""What is known of a change."""


def message_format(table: ConnectorTable) -> str:
    """What a message of a topic is."""
    return table.options.get("format") or table.options.get("value.format") or ""


def is_change_log(table: ConnectorTable) -> bool:
    """Whether messages tell changes, rather than being rows."""
    return message_format(table) in CHANGE_FORMATS


def _check(table: ConnectorTable) -> None:
    if not message_format(table):
        raise InvalidOption(
            f"table `{table.full_name}`: connector `kafka` needs `format`",
            hint=f"add 'format' = '...' to WITH (...): {', '.join((*ROW_FORMATS, *CHANGE_FORMATS))}",
        )
    if is_change_log(table) and not table.primary_key:
        raise InvalidSchema(
            f"table `{table.full_name}` has no primary key: changes of format `{message_format(table)}` need one",
            hint="add PRIMARY KEY (...) NOT ENFORCED to its columns",
        )
    if not is_change_log(table) and table.primary_key:
        raise InvalidSchema(
            f"table `{table.full_name}` has a primary key, but its messages are rows that only come",
            hint=f"leave PRIMARY KEY out, or use one of the formats {', '.join(CHANGE_FORMATS)}",
        )


KAFKA = ConnectorDefinition(
    "kafka",
    "topics of a Kafka cluster",
    _OPTIONS,
    is_source=True,
    metadata=tuple(dict.fromkeys((*METADATA, *CHANGE_METADATA))),
    check=_check,
)
