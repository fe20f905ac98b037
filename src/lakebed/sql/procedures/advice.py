"""`CALL sys.advise`: what other settings of a table would have cost."""

from __future__ import annotations

import pyarrow as pa

from lakebed.sql.procedures.registry import TABLE, Kind, Parameter, Procedure, Rows, SqlLake


def _advise(lake: SqlLake, table: str, days: int = 7, reads: int = 24) -> Rows:
    found = lake.table(table).advise(days, reads=reads)
    rows = []
    for trial in found.trials:
        told, advised = trial.to_dict(), trial is found.advised
        figures = [told[name] for name in ("write_amplification", "runs_per_bucket", "files", "size_bytes")]
        setting = ", ".join(f"{key} = {value}" for key, value in trial.setting.items())
        command = "; ".join(found.commands) if advised else None
        rows.append(
            (setting, *figures, told["moved_bytes_a_day"], trial.needs or None, advised, command, found.sureness)
        )
    return rows


PROCEDURES = (
    Procedure(
        "advise",
        (TABLE, Parameter("days", Kind.NUMBER), Parameter("reads", Kind.NUMBER)),
        _advise,
        {
            "settings": pa.string(),
            "write_amplification": pa.float64(),
            "runs_per_bucket": pa.float64(),
            "files": pa.float64(),
            "size_bytes": pa.int64(),
            "moved_bytes_a_day": pa.int64(),
            "needs": pa.string(),
            "advised": pa.bool_(),
            "commands": pa.string(),
            "sureness": pa.string(),
        },
    ),
)
