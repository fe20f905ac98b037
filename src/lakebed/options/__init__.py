"""The option table, and the typed view of a table's options.

Every option is a constant, named like its key in capitals (`DYNAMIC_BUCKET_MAX_BUCKETS`; options with a column in
their key start with `FIELD_`), and a handle that knows its type: `Options(raw)[BUCKET]` is an `int`. Adding an option
means adding one constant to the file of its group; parsing, checking, suggestions and the reference page follow from
it. Keys are spelled out in this package only.
"""

# ruff: noqa: F403
# Everything is re-exported wholesale: a list of the constants here would be a second place to keep up to date.
from lakebed.options.changelogs import *
from lakebed.options.check import *
from lakebed.options.committing import *
from lakebed.options.compacting import *
from lakebed.options.elsewhere import *
from lakebed.options.files import *
from lakebed.options.keys import *
from lakebed.options.lifecycle import *
from lakebed.options.merging import *
from lakebed.options.option import *
from lakebed.options.page import *
from lakebed.options.reading import *
from lakebed.options.streaming import *
from lakebed.options.table import *
from lakebed.options.tracking import *
from lakebed.options.view import *
from lakebed.options.views import *
from lakebed.options.writing import *
