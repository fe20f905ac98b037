"""Settings of all tests."""

from hypothesis import settings

# How long an example takes says more about the machine than about us: benchmarks measure time, tests do not.
settings.register_profile("untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("untimed")
