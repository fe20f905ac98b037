"""From `s3.access-key` and the like to what the object-store client is built with.

Accepted under each prefix: Paimon's names for S3, the client's own setting names, its HTTP settings, and how long and
often to retry, also under the names that Paimon hands on to Hadoop (`s3.retry.limit`). `-`, `.` and `_` are one and the
same inside a name, because Paimon's own spellings differ between versions (`s3.path-style-access`,
`s3.path.style.access`). A misspelt setting would surface as a puzzling refusal by the server
much later, so unknown names are refused here. Options without the prefix belong to somebody else and are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.fileio.patience import Patience
from lakebed.records import dataclass
from lakebed.units import parse_duration

__all__ = ["AZURE", "GCS", "S3", "Connection", "StoreKind", "read_connection"]

_HTTP_SETTINGS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_RETRIES = {
    "max_retries": "most_repeats",
    "retry_limit": "most_repeats",
    "retry_timeout": "timeout_ms",
    "retry_interval": "first_wait_ms",
    "retry_max_interval": "longest_wait_ms",
}
"""Members of `Patience` by the names of options."""
_TIMEOUTS = {"connection_establish_timeout": "connect_timeout", "connection_timeout": "read_timeout"}
"""Hadoop's names for two of the client's settings: milliseconds where no unit is given."""
_PROFILE = "profile"
_PATH_STYLE = "path_style_access"


@dataclass(frozen=True, slots=True)
class StoreKind:
    """One kind of object store: the options' prefix, the client's settings, and other names for some of them."""

    prefix: str
    settings: frozenset[str]
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client is built with. Values stay text: the client parses them. Not shown by `repr`: they hold secrets."""

    config: dict[str, str] = field(repr=False)
    http: dict[str, str] = field(repr=False)
    patience: Patience
    profile: str | None = None
    """The part of AWS's own files that credentials are read from, again and again."""


S3 = StoreKind(
    prefix="s3.",
    settings=frozenset(
        {
            "access_key_id",
            "secret_access_key",
            "session_token",
            "region",
            "endpoint",
            "virtual_hosted_style_request",
            "skip_signature",
            "unsigned_payload",
            "checksum_algorithm",
            "disable_tagging",
            "disable_bulk_delete",
            "imdsv1_fallback",
            "metadata_endpoint",
            "container_credentials_relative_uri",
            "container_credentials_full_uri",
            "container_authorization_token_file",
            "web_identity_token_file",
            "role_arn",
            "role_session_name",
            "sts_endpoint",
            "request_payer",
            "s3_express",
            "server_side_encryption",
            "sse_bucket_key_enabled",
            "sse_customer_key_base64",
            "sse_kms_key_id",
        }
    ),
    other_names={
        "access_key": "access_key_id",
        "secret_key": "secret_access_key",
        _PATH_STYLE: _PATH_STYLE,
        _PROFILE: _PROFILE,
    },
)

GCS = StoreKind(
    prefix="gs.",
    settings=frozenset(
        {
            "service_account",
            "service_account_key",
            "application_credentials",
            "bearer_token",
            "base_url",
            "skip_signature",
        }
    ),
)

AZURE = StoreKind(
    prefix="az.",
    settings=frozenset(
        {
            "account_name",
            "account_key",
            "access_key",
            "client_id",
            "client_secret",
            "tenant_id",
            "authority_host",
            "sas_key",
            "token",
            "endpoint",
            "msi_endpoint",
            "msi_resource_id",
            "object_id",
            "federated_token_file",
            "use_azure_cli",
            "use_emulator",
            "use_fabric_endpoint",
            "skip_signature",
            "disable_tagging",
        }
    ),
)


def read_connection(
    kind: StoreKind, bucket: str, options: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Connection:
    """The client settings that `options` ask for, for one bucket.

    Credentials in the environment count where no option names any. They are noted here, and not left to the client: it
    would look for them anew, and in vain, in the process of a task that was handed this connection.
    """
    config: dict[str, str] = {}
    http: dict[str, str] = {}
    patience: dict[str, int] = {}
    for key, value in options.items():
        if key.startswith(kind.prefix):
            _place(kind, (config, http, patience), key, str(value))
    profile = config.pop(_PROFILE, None)
    if kind is S3:
        profile = _from_environment(config, profile, environment or {})
        _choose_address_style(config, bucket)
    if config.get("endpoint", "").startswith("http://"):
        http.setdefault("allow_http", "true")
    return Connection(config, http, Patience(**patience), profile)


def _place(
    kind: StoreKind, settings: tuple[dict[str, str], dict[str, str], dict[str, int]], key: str, value: str
) -> None:
    config, http, patience = settings
    name = key.removeprefix(kind.prefix).replace("-", "_").replace(".", "_")
    if name in kind.settings or name in kind.other_names:
        config[kind.other_names.get(name, name)] = value
    elif name in _HTTP_SETTINGS:
        http[name] = value
    elif name in _TIMEOUTS:
        http[_TIMEOUTS[name]] = f"{_milliseconds(key, value)}ms"
    elif name in _RETRIES:
        member = _RETRIES[name]
        patience[member] = _milliseconds(key, value) if member.endswith("_ms") else _whole_number(key, value)
    else:
        known = {*kind.settings, *kind.other_names, *_HTTP_SETTINGS, *_RETRIES, *_TIMEOUTS}
        spelled = [kind.prefix + choice.replace("_", "-") for choice in known]
        raise InvalidOption(f"unknown option `{key}`", hint=did_you_mean(key, spelled))


_ENVIRONMENT = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
}
_ANYWHERE = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
}
_OWN_CREDENTIALS = frozenset(
    {"access_key_id", "skip_signature", "web_identity_token_file", "role_arn", "container_credentials_full_uri"}
)


def _from_environment(config: dict[str, str], profile: str | None, environment: Mapping[str, str]) -> str | None:
    """Adds what the environment says and no option does; the profile to use, if any.

    A key is taken with its own secret and token, never with those of another place.
    """

    def add(names: Mapping[str, Sequence[str]]) -> None:
        for setting, variables in names.items():
            found = next((environment[name] for name in variables if environment.get(name)), None)
            if found is not None:
                config.setdefault(setting, found)

    add(_ANYWHERE)
    if profile is not None or _OWN_CREDENTIALS & config.keys():
        return profile
    if environment.get("AWS_ACCESS_KEY_ID"):
        add(_ENVIRONMENT)
        return None
    return environment.get("AWS_PROFILE") or None


def _choose_address_style(config: dict[str, str], bucket: str) -> None:
    """Translate "path style" into the client's opposite setting, which wants the bucket in the endpoint's host name."""
    path_style = config.pop(_PATH_STYLE, None)
    if path_style is None:
        return
    if path_style.lower() not in ("true", "false"):
        raise InvalidOption(f"option `s3.path-style-access` is `{path_style}`", hint="set it to `true` or `false`")
    config["virtual_hosted_style_request"] = "false" if path_style.lower() == "true" else "true"
    endpoint = config.get("endpoint")
    if endpoint is not None and path_style.lower() == "false":
        protocol, separator, host = endpoint.rpartition("://")
        if not host.startswith(f"{bucket}."):
            config["endpoint"] = f"{protocol}{separator}{bucket}.{host}"


def _milliseconds(key: str, value: str) -> int:
    try:
        return parse_duration(value)
    except InvalidOption as error:
        raise InvalidOption(f"option `{key}`: {error.message}", hint=error.hint) from error


def _whole_number(key: str, value: str) -> int:
    if not value.isdecimal():
        raise InvalidOption(f"option `{key}` is `{value}`", hint="set it to a whole number, such as 10")
    return int(value)
