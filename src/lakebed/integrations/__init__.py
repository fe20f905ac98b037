"""Tables for runtimes of other kinds, each in a module of its own: `ray` and `torch`. All stand on `t.plan()`."""
