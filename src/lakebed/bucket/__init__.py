"""Which bucket a row belongs to. `BUCKET_FUNCTIONS` holds what the option `bucket-function.type` can name."""

from __future__ import annotations

from lakebed.bucket.functions import BucketFunction, DefaultFunction, ModFunction
from lakebed.bucket.hive import HiveFunction

BUCKET_FUNCTIONS: dict[str, BucketFunction] = {
    function.name: function for function in (DefaultFunction(), ModFunction(), HiveFunction())
}
