"""Where pyspark is not installed, whatever needs it says which extra brings it."""

import subprocess
import sys
from pathlib import Path

WITHOUT_PYSPARK = """
import sys
sys.modules["pyspark"] = None  # an import of it, or of anything in it, fails
import lakebed
table = lakebed.connect({lake!r}).create_table("t", {{"id": "BIGINT"}}, primary_key=["id"])
for call in {calls!r}:
    try:
        eval(call)
    except lakebed.errors.MissingDependency as error:
        print(call, error.hint)
"""
CALLS = [
    "table.to_spark()",
    "table.read_stream()",
    "table.write_spark(None)",
    'table.write_stream(None, checkpoint="checkpoint")',
    "lakebed.connect({lake!r}).sql('SHOW FUNCTIONS')",
]


def test_a_job_without_pyspark(tmp_path: Path) -> None:
    """Each way to Spark, SQL that only Spark knows too, names the extra to install instead of a module nobody knows."""
    calls = [call.format(lake=str(tmp_path)) for call in CALLS]
    program = WITHOUT_PYSPARK.format(lake=str(tmp_path), calls=calls)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f'{call} install it with: pip install "lakebed[spark]"' for call in calls], done
