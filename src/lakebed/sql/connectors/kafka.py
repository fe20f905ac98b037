"""`kafka` and `upsert-kafka`: topics with messages of rows, or of changes. Options have Flink's names."""

from __future__ import annotations

from typing import Final

from lakebed.errors import InvalidOption, InvalidSchema, NotFound, did_you_mean
from lakebed.options import CSV_FIELD_DELIMITER, JSON_IGNORE_PARSE_ERRORS
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import TRUTH, ConnectorOption, refused
from lakebed.sql.connectors.table import ConnectorTable

AVRO_CHANGES: Final = "debezium-avro-confluent"
AVRO_ROWS: Final = "avro-confluent"
"""Flink's names for Avro with a registry of schemas."""
CHANGE_FORMATS: Final = ("debezium-json", "canal-json", "maxwell-json", "ogg-json", "aws-dms-json", AVRO_CHANGES)
"""Messages that tell changes of rows; they need a key to land."""
ROW_FORMATS: Final = ("json", "csv")
"""Messages that are rows."""
_FORMATS: Final = (*ROW_FORMATS, AVRO_ROWS, *CHANGE_FORMATS)
"""What messages of `kafka` may be."""
_STARTS = ("earliest-offset", "latest-offset")
_OFFSETS = "use `earliest-offset` or `latest-offset`; offsets are kept by the pipeline, not by a group"

KEY_FORMATS: Final = ("json", "csv")
"""What the key of a message may be that is written."""
TEXT_KEY: Final = "raw"
"""A key that is a text, which is read only."""
UPSERT_FORMATS: Final = ("json", AVRO_ROWS)
"""Messages that are rows, each of which takes the place of the one with its key, that can be read."""
EXACTLY_ONCE: Final = "exactly-once"
_GUARANTEES = (EXACTLY_ONCE, "at-least-once")
_USER_INFO = "USER_INFO"
_STATE = "leave it out: `sink.transactional-id-prefix` and the name of the INSERT make it up"

_WRITING = (
    ConnectorOption("key.fields", "columns that make up the key of a message, with `;` between them"),
    ConnectorOption("value.fields-include", "`ALL`: columns of the key are in the value, too", choices=("ALL",)),
    ConnectorOption(
        "sink.delivery-guarantee",
        "`exactly-once`: each step is a transaction; `at-least-once`: a step may be sent again",
        default=EXACTLY_ONCE,
        choices=_GUARANTEES,
    ),
    ConnectorOption(
        "sink.transactional-id-prefix",
        "how the names of transactions, and of the topic that says how far an INSERT is, begin",
        default="lakebed-",
    ),
    ConnectorOption(
        "sink.partitioner",
        "`default`: by the key, as Kafka's own; `fixed`: all messages to the first partition",
        default="default",
        choices=("default", "fixed"),
    ),
    refused("key.fields-prefix", "leave it out: rename columns in the query"),
    refused("sink.buffer-flush.*", "leave it out: a step is sent as a whole"),
    refused("sink.*", "leave it out: one process writes, and a step is one transaction"),
)
"""Options of topics that are written."""
_CLIENT = (
    refused("properties.transactional.id", _STATE),
    refused("properties.enable.idempotence", "leave it out: messages are always sent once"),
    ConnectorOption("properties.*", "any property of the client, such as `properties.security.protocol`"),
)
"""Properties of the client; those that have to be what they are come first."""


def _registry(form: str) -> tuple[ConnectorOption, ...]:
    """Options of a format whose schemas stand in a registry."""
    return (
        ConnectorOption(f"{form}.url", "where the registry of schemas is; several with `,` between them"),
        ConnectorOption(
            f"{form}.basic-auth.credentials-source", "where its user stands", choices=(_USER_INFO,), default=_USER_INFO
        ),
        ConnectorOption(
            f"{form}.basic-auth.user-info", "`user:password` for it; `${env:NAME}` reads it from the environment"
        ),
        ConnectorOption(f"{form}.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
        refused(f"{form}.ssl.*", "leave it out: give an https address, and the machine's certificates"),
        refused(f"{form}.*", "leave it out: each message names its own schema"),
    )


_OPTIONS = (
    ConnectorOption("topic", "the topic, or several to read, with `;` between them", is_required=True),
    ConnectorOption("properties.bootstrap.servers", "where the cluster is", is_required=True),
    ConnectorOption("format", "what a message is", choices=_FORMATS),
    ConnectorOption("value.format", "the same", choices=_FORMATS),
    ConnectorOption("scan.startup.mode", "where to begin", default="earliest-offset", choices=_STARTS),
    ConnectorOption("properties.group.id", "taken, and of no effect: offsets are kept with the rows"),
    ConnectorOption("properties.auto.offset.reset", "taken, and of no effect: a lost offset is an error"),
    *_CLIENT,
    ConnectorOption(JSON_IGNORE_PARSE_ERRORS.key, "leave out messages that can not be read", TRUTH, default="false"),
    ConnectorOption("json.fail-on-missing-field", "`false`: what is missing is null", TRUTH, choices=("false",)),
    ConnectorOption(CSV_FIELD_DELIMITER.key, "what stands between values", default=","),
    ConnectorOption("csv.ignore-parse-errors", "leave out messages that can not be read", TRUTH, default="false"),
    ConnectorOption("debezium-json.schema-include", "messages may bring their schema", TRUTH, default="false"),
    ConnectorOption("debezium-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("canal-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("maxwell-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("ogg-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    ConnectorOption("aws-dms-json.ignore-parse-errors", "leave out what can not be read", TRUTH, default="false"),
    *_registry(AVRO_ROWS),
    *_registry(AVRO_CHANGES),
    ConnectorOption("landing.*", "an option of the table of the lake that messages land in"),
    ConnectorOption("key.format", "what the key of a message is that is written", choices=KEY_FORMATS),
    *_WRITING,
    refused("topic-pattern", "name the topics in `topic`, with `;` between them"),
    refused("scan.startup.*", _OFFSETS),
    refused("scan.bounded.*", "leave it out: a pipeline with --once ends when it has caught up"),
    refused("scan.topic-partition-discovery.interval", "leave it out: partitions are looked for at each step"),
)
METADATA = ("topic", "partition", "offset", "timestamp", "timestamp-type", "key", "headers")
"""What is known of every message."""
CHANGE_METADATA = ("database_name", "schema_name", "table_name", "op_ts", *METADATA)
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
            hint=f"add 'format' = '...' to WITH (...): {', '.join(_FORMATS)}",
        )
    if is_change_log(table) and not table.primary_key:
        raise InvalidSchema(
            f"table `{table.full_name}` has no primary key: changes of format `{message_format(table)}` need one",
            hint="add PRIMARY KEY (...) NOT ENFORCED to its columns",
        )
    if not is_change_log(table) and table.primary_key:
        raise InvalidSchema(
            f"table `{table.full_name}` has a primary key, but its messages are rows that only come",
            hint="leave PRIMARY KEY out; or, if a message takes the place of the one with its key, use connector "
            f"`upsert-kafka`; or use one of the formats {', '.join(CHANGE_FORMATS)}",
        )
    if message_format(table) in (AVRO_CHANGES, AVRO_ROWS):
        _check_registry(table, message_format(table))
    _check_written_key(table)


def _check_registry(table: ConnectorTable, form: str) -> None:
    if not table.options.get(f"{form}.url"):
        raise InvalidOption(
            f"table `{table.full_name}`: format `{form}` needs `{form}.url`",
            hint=f"add '{form}.url' = 'http://...' to WITH (...): where the registry of schemas is",
        )


def message_key(table: ConnectorTable) -> tuple[str, ...]:
    """Columns that make up the key of a message that is written; none if it has no key."""
    given = table.options.get("key.fields", "")
    return tuple(name.strip() for name in given.split(";") if name.strip()) or table.primary_key


def _check_written_key(table: ConnectorTable) -> None:
    own = [field.name for field in table.columns]
    for name in message_key(table):
        if name not in own:
            raise NotFound(
                f"table `{table.full_name}` has no column `{name}` for `key.fields`", hint=did_you_mean(name, own)
            )
        if table.primary_key and name not in table.primary_key:
            raise InvalidOption(
                f"table `{table.full_name}`: column `{name}` of `key.fields` is none of the primary key",
                hint="messages of a row have to come into one partition: take columns of the primary key, or leave "
                "the option out",
            )
    if "key.format" in table.options and not message_key(table):
        raise InvalidOption(
            f"table `{table.full_name}` has `key.format`, but nothing says which columns the key has",
            hint="add 'key.fields' = '...' to WITH (...)",
        )


def _check_upsert(table: ConnectorTable) -> None:
    if not table.primary_key:
        raise InvalidSchema(
            f"table `{table.full_name}` has no primary key: connector `upsert-kafka` needs one",
            hint="add PRIMARY KEY (...) NOT ENFORCED to its columns",
        )
    _check_written_key(table)
    if set(message_key(table)) != set(table.primary_key):
        raise InvalidOption(
            f"table `{table.full_name}`: `key.fields` leaves out columns of the primary key",
            hint="leave the option out: the key of a message is the primary key",
        )
    if AVRO_ROWS in (table.options.get("value.format"), table.options.get("key.format")):
        _check_registry(table, AVRO_ROWS)
    if table.options.get("key.format") == TEXT_KEY and len(table.primary_key) > 1:
        raise InvalidOption(
            f"table `{table.full_name}`: a key of format `{TEXT_KEY}` is one text, and the primary key has "
            f"{len(table.primary_key)} columns",
            hint="use `json`, if that is what keys are",
        )


KAFKA = ConnectorDefinition(
    "kafka",
    "topics of a Kafka cluster",
    _OPTIONS,
    is_source=True,
    is_sink=True,
    metadata=tuple(dict.fromkeys((*METADATA, *CHANGE_METADATA))),
    check=_check,
)
UPSERT_KAFKA = ConnectorDefinition(
    "upsert-kafka",
    "a topic of a Kafka cluster that holds the last row of each key",
    (
        ConnectorOption("topic", "the topic", is_required=True),
        ConnectorOption("properties.bootstrap.servers", "where the cluster is", is_required=True),
        *_CLIENT,
        ConnectorOption(
            "key.format",
            f"what the key of a message is; `csv` is written, not read, `{TEXT_KEY}` (a text) and `{AVRO_ROWS}` are "
            "read, not written",
            is_required=True,
            choices=(*KEY_FORMATS, TEXT_KEY, AVRO_ROWS),
        ),
        ConnectorOption(
            "value.format",
            f"what a message is; `csv` is written, not read, `{AVRO_ROWS}` is read, not written",
            is_required=True,
            choices=(*ROW_FORMATS, AVRO_ROWS),
        ),
        ConnectorOption(JSON_IGNORE_PARSE_ERRORS.key, "leave out what can not be read", TRUTH, default="false"),
        *_registry(AVRO_ROWS),
        ConnectorOption("landing.*", "an option of the table of the lake that rows land in"),
        ConnectorOption(CSV_FIELD_DELIMITER.key, "what stands between values", default=","),
        *_WRITING,
        refused("scan.*", "leave it out: a topic of rows by key is read from its beginning"),
    ),
    is_source=True,
    is_sink=True,
    metadata=("table_name", "op_ts", *METADATA),
    check=_check_upsert,
)
