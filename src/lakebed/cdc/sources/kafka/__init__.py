"""Change messages in topics of a Kafka cluster."""

from __future__ import annotations

from lakebed.cdc.sources.kafka.source import KafkaSource

__all__ = ["KafkaSource"]
