"""A table of another system, as a statement has defined it: columns, keys and options, in memory only.

What it shows of itself (`repr`, SHOW CREATE TABLE, errors) never holds a secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field

from lakebed.errors import NotFound
from lakebed.records import dataclass
from lakebed.sql.connectors.options import CONNECTOR, TRUTH, WHOLE, ConnectorOption, is_of_kind
from lakebed.sql.words.secrets import environment_name, names_environment, shown_value, with_environment
from lakebed.types.logical import DataField, DataType


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A METADATA column: which fact of the source it shows, and as which type."""

    key: str
    type: DataType
    is_virtual: bool = False
    """Whether it is read only, and no part of what is written to the table."""


@dataclass(frozen=True, repr=False)
class ConnectorTable:
    """One such table."""

    database: str
    name: str
    columns: tuple[DataField, ...]
    """Those that the source has, in the order of the definition."""
    computed: Mapping[str, str]
    """Columns that are computed from the others: their values in SQL."""
    metadata: Mapping[str, MetadataField]
    order: tuple[str, ...]
    """Names of all columns, in the order of the definition."""
    primary_key: tuple[str, ...]
    watermark: tuple[str, str] | None
    """The column of the event time, and its watermark in SQL."""
    options: Mapping[str, str]
    """As given: secrets among them."""
    declared: tuple[ConnectorOption, ...] = field(default=(), compare=False)
    """What its connector takes: defaults and kinds of the options."""
    comment: str | None = None
    is_temporary: bool = False

    @property
    def full_name(self) -> str:
        """`database.table`."""
        return f"{self.database}.{self.name}"

    @property
    def connector(self) -> str:
        """The word of option `connector`."""
        return self.options[CONNECTOR]

    def __repr__(self) -> str:
        return f"<connector table {self.full_name}: {self.connector}, columns {', '.join(self.order)}>"

    # --- options -------------------------------------------------------------------------------------------------

    def shown_options(self) -> dict[str, str]:
        """The options as they may be shown."""
        return {key: shown_value(key, value) for key, value in self.options.items()}

    def option(self, name: str) -> str | None:
        """The value that is given, or the default; what is to come from the environment is read there, now."""
        given = self.options.get(name)
        if given is None:
            return next((option.default for option in self.declared if option.name == name), None)
        return self._resolved(name, given)

    def required(self, name: str) -> str:
        """The value of an option that is given for sure, or has a default."""
        found = self.option(name)
        assert found is not None, name
        return found

    def whole(self, name: str) -> int | None:
        """The value of an option that is a whole number."""
        found = self.option(name)
        return None if found is None else int(self._of_kind(name, found, WHOLE))

    def truth(self, name: str) -> bool:
        """The value of an option that is true or false."""
        found = self.option(name)
        return found is not None and self._of_kind(name, found, TRUTH).lower() == "true"

    def environment(self, name: str) -> str | None:
        """The variable that all of an option's value is to be read from; None if the value is written out."""
        given = self.options.get(name)
        return None if given is None else environment_name(given)

    def below(self, prefix: str) -> dict[str, str]:
        """The options behind a prefix, by the rest of their names."""
        return {
            key.removeprefix(prefix): self._resolved(key, value)
            for key, value in self.options.items()
            if key.startswith(prefix)
        }

    def _resolved(self, key: str, value: str) -> str:
        if not names_environment(value):
            return value
        try:
            return with_environment(value, dict(os.environ))
        except KeyError as error:
            raise NotFound(
                f"table `{self.full_name}`: environment variable `{error.args[0]}` of option `{key}` is not set",
                hint="set it where the pipeline runs, or write the value itself",
            ) from None

    def _of_kind(self, key: str, value: str, kind: str) -> str:
        if not is_of_kind(kind, value):
            raise NotFound(
                f"table `{self.full_name}`: option `{key}` from the environment is no {kind}",
                hint=f"set the variable to a {kind}",
            )
        return value.strip()
