"""A real Apache Kafka for tests: one node that is broker and controller, on 127.0.0.1, with a directory of its own.

Its jars come from Maven; whoever starts it has them. No tool formats the directory: what that would write is one small
file. It runs with a small heap and few threads, and topics of its own have one partition, so that it starts in seconds.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from lakebed.errors import StorageError
from lakebed.testing.ports import free_port

_START_S: Final = 180.0
_CLUSTER, _DIRECTORY = "bGFrZWJlZC10ZXN0cy0wMA", "bGFrZWJlZC10ZXN0cy0wMQ"
_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "num.partitions": "1",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # One that was killed is forgotten soon: until then it can not come back.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "log.cleaner.dedupe.buffer.size": str(2 << 20),
    "log.cleaner.backoff.ms": "500",
}


_DOORS: Final = ("SASL_PLAINTEXT", "SSL", "SASL_SSL")
PASSWORD: Final = "ada's word"
"""Of `ada`, at doors that ask who comes."""


def make_certificate(home: Path) -> None:
    """A certificate for 127.0.0.1 that nobody but itself vouches for, and with its key what a server shows."""
    key, certificate = home / "key.pem", home / "certificate.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    places = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made.split(), *places], check=True, capture_output=True)
    (home / "keystore.pem").write_text(key.read_text() + certificate.read_text())


class KafkaServer:
    """A broker process and its data. `with KafkaServer(jars) as server:` starts it and takes everything away after."""

    def __init__(self, jars: Sequence[Path], *, secured: bool = False, **settings: str) -> None:
        self.jars = jars
        self._doors = {name: free_port() for name in _DOORS} if secured else {}
        self._port, self._controller_port = free_port(), free_port()
        self._settings = {key.replace("_", "."): value for key, value in settings.items()}
        self._home = Path(tempfile.mkdtemp(prefix="lakebed-kafka-server-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients find it, also after a restart."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Starts it, on its old data if there are any, and waits until it answers."""
        data = self._home / "data"
        if not data.exists():
            data.mkdir()
            lines = ["version=1", f"cluster.id={_CLUSTER}", "node.id=1", f"directory.id={_DIRECTORY}"]
            (data / "meta.properties").write_text("\n".join(lines) + "\n")
        place, controller = self.address, f"127.0.0.1:{self._controller_port}"
        own = {
            "log.dirs": str(data),
            "listeners": f"PLAINTEXT://{place},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{place}",
            "controller.quorum.voters": f"1@{controller}",
        } | self._security(place, controller)
        told = self._home / "server.properties"
        told.write_text("".join(f"{key}={value}\n" for key, value in {**_SETTINGS, **own, **self._settings}.items()))
        # Short runs: the quick compiler and the simple collector start fastest.
        flags = [
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        ]
        jars = ":".join(str(jar) for jar in self.jars)
        with (self._home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *flags, "-cp", jars, "kafka.Kafka", str(told)], stdout=log, stderr=log, cwd=self._home
            )
        self._wait()
        return self

    def door(self, name: str) -> str:
        """Where clients find it that log in (`SASL_PLAINTEXT`), that look for its certificate (`SSL`), or both
        (`SASL_SSL`). They log in with PLAIN as `ada`, and with SCRAM as whoever `add_scram_user` has added."""
        return f"127.0.0.1:{self._doors[name]}"

    @property
    def certificate(self) -> Path:
        """What clients that look for its certificate trust."""
        return self._home / "certificate.pem"

    def add_scram_user(self, name: str, password: str) -> None:
        """Somebody who logs in with SCRAM-SHA-512."""
        from confluent_kafka.admin import (  # type: ignore[attr-defined]
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(name, info, password.encode())
        client = self._admin()  # has to outlast the answers
        for future in client.alter_user_scram_credentials([wanted]).values():
            future.result()

    def _security(self, place: str, controller: str) -> dict[str, str]:
        """Settings of the doors that ask who comes."""
        if not self._doors:
            return {}
        if not self.certificate.exists():
            make_certificate(self._home)
        listeners = {"PLAINTEXT": place} | {name: self.door(name) for name in self._doors}
        told = ",".join(f"{name}://{where}" for name, where in listeners.items())
        found = {
            "listeners": f"{told},CONTROLLER://{controller}",
            "advertised.listeners": told,
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in listeners)
            + ",CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._home / "keystore.pem"),
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            modules = "org.apache.kafka.common.security"
            plain = f'{modules}.plain.PlainLoginModule required user_ada="{PASSWORD}";'
            scram = f"{modules}.scram.ScramLoginModule required;"
            found |= {
                f"listener.name.{name}.plain.sasl.jaas.config": plain,
                f"listener.name.{name}.scram-sha-512.sasl.jaas.config": scram,
            }
        return found

    def stop(self) -> None:
        """An orderly end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9`."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop and start."""
        self.stop()
        return self.start()

    def remove(self) -> None:
        """Ends it and deletes its data."""
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """A topic, if it is not there; options have `_` for `.` in their names."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        wanted = {key.replace("_", "."): value for key, value in config.items()}
        client = self._admin()
        if name in client.list_topics(timeout=_START_S).topics:
            return
        client.create_topics([NewTopic(name, num_partitions=partitions, config=wanted)])[name].result()

    def delete_topic(self, name: str) -> None:
        """Deletes a topic, and waits until it is gone."""
        client = self._admin()
        if name in client.list_topics(timeout=_START_S).topics:
            client.delete_topics([name])[name].result()
        while name in client.list_topics(timeout=_START_S).topics:
            time.sleep(0.05)

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def messages(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of all messages that count, in the order of each partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        reader = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        try:
            partitions = reader.list_topics(topic, 30).topics[topic].partitions
            reader.assign([TopicPartition(topic, number, 0) for number in partitions])
            found, ended, until = [], 0, time.monotonic() + _START_S
            while ended < len(partitions):
                message = reader.poll(1.0)
                if time.monotonic() > until:
                    raise StorageError(f"topic {topic} does not end", hint="a transaction may be open")
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    found.append((message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
            return found
        finally:
            reader.close()

    def _wait(self) -> None:
        from confluent_kafka import KafkaException

        assert self._process is not None
        client, until = self._admin(), time.monotonic() + _START_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if client.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                time.sleep(0.1)
        ended = self._process.poll()
        how = f"within {_START_S:.0f} s" if ended is None else f"and ended with {ended}"
        said = (self._home / "server.log").read_text(errors="replace")[-4000:]
        self.kill()
        raise StorageError(f"Kafka did not start {how}: {said}", hint="look at what it says")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_START_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


__all__ = ["PASSWORD", "KafkaServer", "make_certificate"]
