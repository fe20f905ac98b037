"""Which bucket a row belongs to. `BUCKET_FUNCTIONS` holds what the option `bucket-function.type` can name."""

from __future__ import annotations

from lakebed.bucket.base import BucketFunction
from lakebed.bucket.default import DefaultFunction
from lakebed.bucket.hive import HiveFunction
from lakebed.bucket.mod import ModFunction

BUCKET_FUNCTIONS: dict[str, BucketFunction] = {
    function.name: function for function in (DefaultFunction(), ModFunction(), HiveFunction())
}
