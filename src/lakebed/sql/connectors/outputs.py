"""`print` and `blackhole`: where rows of a stream can be looked at, or go nowhere."""

from __future__ import annotations

from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.options import TRUTH, WHOLE, ConnectorOption, refused

_ONE_PROCESS = "leave it out: one process writes"

PRINT = ConnectorDefinition(
    "print",
    "rows are printed with their kinds: +I[1, a]",
    (
        ConnectorOption("print-identifier", "what stands before each row"),
        ConnectorOption("standard-error", "print to the standard error", TRUTH, default="false"),
        refused("sink.*", _ONE_PROCESS),
    ),
    is_sink=True,
)
BLACKHOLE = ConnectorDefinition(
    "blackhole",
    "rows are taken and forgotten",
    (ConnectorOption("property-version", "the version of these options", WHOLE, default="1", choices=("1",)),),
    is_sink=True,
)
