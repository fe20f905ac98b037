"""Where pyspark is not installed, whatever needs it says which extra brings it."""

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_PYSPARK = """
import sys
sys.modules["pyspark"] = None  # an import of it, or of anything in it, fails
import lakebed
table = lakebed.connect({lake!r}).create_table("t", {{"id": "BIGINT"}}, primary_key=["id"])
try:
    table.{call}
except lakebed.errors.MissingDependency as error:
    print(error.hint)
"""


@pytest.mark.parametrize(
    "call", ["to_spark()", "read_stream()", "write_spark(None)", 'write_stream(None, checkpoint="checkpoint")']
)
def test_a_job_without_pyspark(call: str, tmp_path: Path) -> None:
    """Each way to Spark names the extra to install, instead of a module that nobody knows."""
    program = WITHOUT_PYSPARK.format(lake=str(tmp_path), call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == 'install it with: pip install "lakebed[spark]"', done.stderr


def test_a_statement_of_sparks(tmp_path: Path) -> None:
    """So does SQL that only Spark knows."""
    statement = f"connect({str(tmp_path)!r}).sql('SHOW FUNCTIONS')"
    program = WITHOUT_PYSPARK.format(lake=str(tmp_path), call="None").replace("table.None", f"lakebed.{statement}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == 'install it with: pip install "lakebed[spark]"', done.stderr
