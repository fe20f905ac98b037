"""Clients of a Kafka cluster for a topic that is written: how they are told where it is, and what their errors mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lakebed.cdc.sources.kafka.client import confluent
from lakebed.errors import InvalidOption, LakebedError, StorageError
from lakebed.records import dataclass
from lakebed.sql.connectors.table import ConnectorTable

PATIENCE_S: Final = 15.0
"""How long a cluster has to answer a question."""
_SERVERS: Final = "bootstrap.servers"
_NOT_PASSED: Final = (_SERVERS, "group.id", "auto.offset.reset")
_JAAS: Final = "sasl.jaas.config"
_LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


def admin_tools() -> Any:
    """What the client has to make and to describe topics."""
    confluent()
    import confluent_kafka.admin

    return confluent_kafka.admin


def servers_of(table: ConnectorTable) -> str:
    """Where the cluster of a table is."""
    return table.required(f"properties.{_SERVERS}")


def properties_of(table: ConnectorTable) -> dict[str, str]:
    """Properties of the client. It has no JAAS: user and password are taken out of what Java's client is told."""
    given = {key: value for key, value in table.below("properties.").items() if key not in _NOT_PASSED}
    jaas = given.pop(_JAAS, None)
    if jaas is None:
        return given
    found = dict(_LOGIN.findall(jaas))
    if set(found) != {"username", "password"}:
        raise InvalidOption(
            f"table `{table.full_name}`: option `properties.{_JAAS}` has no username and password in it",
            hint="set `properties.sasl.username` and `properties.sasl.password` in its place",
        )
    return {**given, "sasl.username": found["username"], "sasl.password": found["password"]}


@dataclass(frozen=True)
class Cluster:
    """A cluster as the definition of a table tells it."""

    table: str
    servers: str
    properties: Mapping[str, str]
    """Secrets among them."""

    @staticmethod
    def of(table: ConnectorTable) -> Cluster:
        """Where a table is written."""
        return Cluster(table.full_name, servers_of(table), properties_of(table))

    def opened(self, kind: type[Any], **own: Any) -> Any:
        """A client of the cluster."""
        told = {**self.properties, _SERVERS: self.servers, "log_level": 0}
        try:
            return kind({**told, **{key.replace("_", "."): value for key, value in own.items()}})
        except confluent().KafkaException as error:
            raise InvalidOption(
                f"table `{self.table}`: the client of Kafka refuses its properties: {reason(error)}",
                hint="correct the options `properties.*`; librdkafka's names are meant",
            ) from None

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Errors of the client as ours."""
        try:
            yield
        except confluent().KafkaException as error:
            raise self.failed(error) from None

    def failed(self, error: Any) -> LakebedError:
        """What an error of the client means."""
        return StorageError(
            f"table `{self.table}`: Kafka at {self.servers}: {reason(error)}",
            hint="check that the cluster runs, `properties.bootstrap.servers`, and what the user may do there; nothing "
            "is lost, and it goes on when the cluster answers",
        )


def reason(error: Any) -> str:
    """What a client says in its error."""
    return str(_told(error).str())


def code(error: Any) -> int:
    """The number of an error."""
    return int(_told(error).code())


def _told(error: Any) -> Any:
    """The error itself, of an exception or of a report on a message."""
    return error.args[0] if isinstance(error, Exception) else error


__all__ = ["PATIENCE_S", "Cluster", "admin_tools", "code", "properties_of", "reason", "servers_of"]
