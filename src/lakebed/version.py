"""The version of this package, in one place: the build reads it here, and snapshots record it."""

VERSION = "0.1.0"
