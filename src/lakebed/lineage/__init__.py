"""Tells a server of lineage, in OpenLineage's words, what reads which tables and writes which. Off unless asked for.

`runs` has what begins and ends, `datasets` what is read and written, `sender` takes events away in the background. What
goes wrong here is logged once and changes nothing: no statement fails, or waits, for its lineage.
"""

from lakebed.lineage.datasets import Dataset, table_dataset
from lakebed.lineage.runs import Job, Run, begun, told, untold

__all__ = ["Dataset", "Job", "Run", "begun", "table_dataset", "told", "untold"]
