"""How long random tests run, and how their failures are told.

Default: a fixed number of examples, other ones in each run; on CI (`CI` is set) the same ones in each run, so that a
red build is the change's fault. A failure prints the steps and a `@reproduce_failure` line. The long run:
`pytest tests/properties -m nightly`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_LENIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("lakebed", deadline=None, print_blob=True, suppress_health_check=_LENIENT)
settings.register_profile("lakebed-ci", settings.get_profile("lakebed"), derandomize=True)
settings.load_profile("lakebed-ci" if os.environ.get("CI") else "lakebed")
