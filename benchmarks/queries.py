"""TPC-H on primary-key tables: the embedded engine against DuckDB on plain Parquet files of the same rows.

    python -m benchmarks.queries [--scale 1] [--rounds 2] [--repeats 3] [--queries 1 6 ...] [--compression snappy]
                                 [--spark] [--keep DIRECTORY]

The rows come from `tpchgen-cli`, in an environment of its own. Every table is measured twice: fully compacted, and
after 5 % of its rows were written again, which leaves runs to merge. A process of its own runs all queries in turn,
each `--repeats` times, and processes of all engines take turns; the best counts. `ratio` is our time divided by
DuckDB's; results are compared with DuckDB's, value by value. The plain files are compressed by snappy, ours by zstd, as
Paimon's are, unless `--compression` says otherwise. Spark is measured with `--spark` only: it takes minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakebed

KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
BUCKETS = {"lineitem": 4, "orders": 2}
Measured = tuple[dict[str, float], dict[str, object], int]
"""Seconds and rows of each query, and the peak of memory in MiB."""
QUERIES = Path(__file__).parents[1] / "tests" / "differential" / "queries" / "tpch.sql"

MEASURE = """
import json, re, sys, time
queries, repeats = json.loads(sys.argv[2]), int(sys.argv[3])
def plain(value):
    return round(float(value), 3) if type(value).__name__ in ("float", "Decimal", "int") else str(value)
def measured(run):
    times, rows = {}, {}
    for name, text in queries.items():
        found = []
        for _ in range(repeats):
            start = time.perf_counter()
            table = run(text)
            found.append(time.perf_counter() - start)
        times[name] = min(found)
        rows[name] = sorted([plain(value) for value in row.values()] for row in table.to_pylist())
    status = open("/proc/self/status").read()  # not ru_maxrss, which begins with the peak of the forking process
    print(json.dumps([times, rows, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) >> 10]))
"""
ENGINES = {
    "lakebed": """
import lakebed
lake = lakebed.connect(sys.argv[1])
measured(lambda text: lake.query(text, engine="duckdb").arrow())
""",
    "duckdb": """
import duckdb, pathlib
connection = duckdb.connect()
connection.execute("CREATE SCHEMA tpch")
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    connection.execute(f"CREATE VIEW tpch.{path.stem} AS SELECT * FROM read_parquet('{path}')")
measured(lambda text: connection.sql(text).to_arrow_table())
""",
    "spark": """
import lakebed
lake = lakebed.connect(sys.argv[1])
lake.spark
measured(lambda text: lake.query(text, engine="spark").arrow())
""",
}


def main() -> int:
    """Prints a line for each query, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2, help="processes of each engine, which take turns")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--queries", type=int, nargs="*", help="numbers of queries; all of them by default")
    parser.add_argument("--compression", default="zstd", help="of the files of the tables")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--json", action="store_true", help="print times as JSON")
    parser.add_argument("--keep", type=Path, help="a directory for the rows, which another run finds there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = given.keep or Path(scratch)
        plain, compacted, upserted = prepared(place, 0.01 if given.small else given.scale, given.compression)
        wanted = {name: text for name, text in queries().items() if not given.queries or int(name) in given.queries}
        runs = {"duckdb": ("duckdb", plain), "compacted": ("lakebed", compacted), "5 % upserted": ("lakebed", upserted)}
        found: dict[str, Measured] = {}
        for _ in range(given.rounds):  # in turn, so that whatever else the machine does meets all of them
            for name, (engine, where) in runs.items():
                found[name] = best(found.get(name), measured(engine, where, wanted, given.repeats))
        if given.spark:
            found["spark, compacted"] = measured("spark", compacted, wanted, 1)
    if given.json:
        times = {name: {"seconds": times, "peak_mib": peak} for name, (times, _, peak) in found.items()}
        print(json.dumps({"benchmark": "queries", **times}))
    else:
        report(found, list(wanted))
    return 0


def best(before: Measured | None, now: Measured) -> Measured:
    """The least time of each query, and the most memory."""
    if before is None:
        return now
    return {name: min(now[0][name], seconds) for name, seconds in before[0].items()}, now[1], max(before[2], now[2])


def report(found: dict[str, Measured], names: list[str]) -> None:
    """The table of times, ratios and memory."""
    others = [name for name in found if name != "duckdb"]
    print(f"{'query':>6} {'duckdb s':>9} " + " ".join(f"{name + ' s':>18} {'ratio':>6}" for name in others))
    base = found["duckdb"][0]
    for name in names:
        cells = []
        for other in others:
            seconds = found[other][0][name]
            is_same = found[other][1][name] == found["duckdb"][1][name]
            cells.append(f"{seconds:18.3f} {seconds / base[name]:6.2f}{'' if is_same else ' DIFFERS'}")
        print(f"{name:>6} {base[name]:9.3f} " + " ".join(cells))
    for other in others:
        ratios = [found[other][0][name] / base[name] for name in names]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        total = sum(found[other][0].values()) / sum(base.values())
        print(f"{other}: {total:.2f} times DuckDB in all, {mean:.2f} in the geometric mean; peak {found[other][2]} MiB")
    print(f"duckdb: {sum(base.values()):.2f} s in all; peak {found['duckdb'][2]} MiB")


def queries() -> dict[str, str]:
    """The queries by number."""
    lines = [line for line in QUERIES.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    texts = [text.strip() for text in "\n".join(lines).split(";") if text.strip()]
    return {str(number): text for number, text in enumerate(texts, 1)}


def measured(engine: str, place: Path, wanted: dict[str, str], repeats: int) -> Measured:
    """Times, rows and peak memory of a process that runs all queries."""
    command = [sys.executable, "-c", MEASURE + ENGINES[engine], str(place), json.dumps(wanted), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{engine} on {place}:\n{done.stderr}")
    times, rows, peak = json.loads(done.stdout.splitlines()[-1])
    return times, rows, peak


def prepared(place: Path, scale: float, compression: str) -> tuple[Path, Path, Path]:
    """Plain files, a lake of compacted tables, and one whose tables have runs to merge."""
    plain, compacted, upserted = place / "plain", place / f"compacted-{compression}", place / f"upserted-{compression}"
    if not plain.exists():
        generate(plain, scale)
    for lake_path, share in ((compacted, 0), (upserted, 20)):
        if lake_path.exists():
            continue
        lake = lakebed.connect(lake_path)
        lake.create_database("tpch")
        for name, key in KEYS.items():
            options = {"bucket": str(BUCKETS.get(name, 1)), "file.compression": compression}
            load(lake, plain / f"{name}.parquet", name, key, options, share)
    return plain, compacted, upserted


def load(lake: lakebed.Lake, path: Path, name: str, key: list[str], options: dict[str, str], share: int) -> None:
    """A table of a file's rows, compacted; then every `share`-th row once more, for the merge to see to."""
    file = pq.ParquetFile(path)
    fields = [pa.field(field.name, _type(field.type), field.name not in key) for field in file.schema_arrow]
    table = lake.create_table(f"tpch.{name}", pa.schema(fields), primary_key=key, options=options)
    schema = table.arrow_schema
    with table.writer() as writer:
        for batch in file.iter_batches(1 << 18):
            writer.write(pa.Table.from_batches([batch]).cast(schema))
    table.compact(full=True)
    if share:
        later = table.with_options({"write-only": "true"})
        with later.writer() as writer:
            for batch in file.iter_batches(1 << 18):
                rows = pa.Table.from_batches([batch]).cast(schema)
                writer.write(rows.take(pa.array(range(0, rows.num_rows, share))))


def _type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


def generate(place: Path, scale: float) -> None:
    """The rows of TPC-H as Parquet files."""
    with tempfile.TemporaryDirectory() as home:
        venv.create(home, with_pip=True)
        subprocess.run([f"{home}/bin/pip", "install", "--quiet", "tpchgen-cli"], check=True)
        command = [f"{home}/bin/tpchgen-cli", "parquet", "-s", f"{scale:g}", f"--output-dir={place}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
