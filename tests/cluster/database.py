"""A database that all hosts of a bed reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.bed import Bed

from lakebed.testing.postgres_server import PostgresServer

PASSWORD_ENV = "LAKEBED_TEST_PASSWORD"


@contextmanager
def reachable_postgres(bed: Bed) -> Iterator[PostgresServer]:
    """A server that listens on the network of the bed as well."""
    with PostgresServer(settings={"listen_addresses": "*"}) as server:
        with (server.data / "pg_hba.conf").open("a") as rules:
            for what in ("all", "replication"):
                rules.write(f"host {what} all {bed.network.driver}/24 scram-sha-256\n")
        server.execute("SELECT pg_reload_conf()")
        yield server


def source_options(bed: Bed, server: PostgresServer) -> dict[str, str]:
    """How tasks log in: with a password that their environment has."""
    url = f"postgresql://{server.user}@{bed.network.driver}:{server.port}/{server.database}"
    return {"url": url, "password_env": PASSWORD_ENV}


__all__ = ["PASSWORD_ENV", "reachable_postgres", "source_options"]
