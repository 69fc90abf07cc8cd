from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from db.settings import PROJECT_ROOT, AuthMode, Settings, SettingsError, load_settings

Setter = Callable[..., None]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Setter:
    """An environment without our settings, and a function that sets some."""
    for name in list(os.environ):
        upper = name.upper()
        if upper.startswith(("MIRRORGRAPH_", "OPENAI_", "ANTHROPIC_", "OTEL_", "DATABASE_URL")):
            monkeypatch.delenv(name)

    def set_all(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_all


def refusal() -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_empty_environment_is_enough() -> None:
    settings = load_settings()
    assert settings.model_dump() == {
        "host": "127.0.0.1",
        "port": 8000,
        "data_dir": PROJECT_ROOT / "data",
        "database_url": None,
        "pool_size": 8,
        "statement_timeout": 30.0,
        "auth": AuthMode.LOCAL,
        "allowed_origins": (),
        "max_request_bytes": 20 * 1024 * 1024,
        "max_document_bytes": 100_000,
        "max_tokens": 2_000,
        "max_depth": 16,
        "max_aliases": 50,
        "max_duplicate_fields": 50,
        "max_directives": 50,
        "max_cost": 10_000,
        "max_batch": 10,
        "max_files": 10,
        "max_operations": 100,
        "max_connections": 2_000,
        "operation_timeout": 30.0,
        "request_timeout": 60.0,
        "legacy_status_codes": False,
        "introspection": True,
        "suggestions": None,
        "heartbeat": 12.0,
        "init_timeout": 10.0,
        "document_cache_entries": 2_000,
        "document_cache_bytes": 128 * 1024 * 1024,
        "trusted_documents": None,
        "trusted_documents_only": False,
        "provider": "demo",
        "model": None,
        "openai_base_url": None,
        "openai_api_key": None,
        "anthropic_base_url": None,
        "anthropic_api_key": None,
        "demo_rate": 30.0,
        "first_token_timeout": 60.0,
        "silence_timeout": 60.0,
        "provider_retries": 2,
        "context_tokens": 8_192,
        "answer_tokens": 1_024,
        "concurrent_runs": 32,
        "runs_per_user": 8,
        "runs_per_character": 4,
        "queued_runs": 1_000,
        "run_retention_days": 30,
        "lease_seconds": 10.0,
        "cooling_off_days": 7.0,
        "housekeeping_seconds": 60.0,
        "assets_url": None,
        "assets_endpoint": None,
        "assets_region": "us-east-1",
        "assets_key_id": None,
        "assets_key": None,
        "assets_max_bytes": 16 * 1024 * 1024,
        "assets_retention_days": 7.0,
        "embedder": None,
        "embedder_threads": 1,
        "demo_content": True,
        "web_dir": PROJECT_ROOT / "explorer" / "dist",
        "log_format": "console",
        "log_level": "info",
        "otlp_endpoint": None,
    }


def test_every_setting_can_be_left_empty(environment: Setter) -> None:
    names = {
        str(field.validation_alias or f"MIRRORGRAPH_{name.upper()}")
        for name, field in Settings.model_fields.items()
    }
    assert {"MIRRORGRAPH_PORT", "DATABASE_URL", "OPENAI_API_KEY"} <= names
    default = load_settings()
    environment(**dict.fromkeys(names, ""))
    assert load_settings() == default


def test_values_are_read_from_the_environment(environment: Setter) -> None:
    environment(
        MIRRORGRAPH_PORT="0",
        MIRRORGRAPH_AUTH="token",
        MIRRORGRAPH_HOST="0.0.0.0",
        MIRRORGRAPH_ALLOWED_ORIGINS=" https://a.example , ,https://b.example,",
        MIRRORGRAPH_DEMO_CONTENT="false",
        MIRRORGRAPH_STATEMENT_TIMEOUT="0.5",
        DATABASE_URL="postgres://ada:secret@db.example/mirror",
        OPENAI_API_KEY="sk-secret",
    )
    settings = load_settings()
    assert (settings.port, settings.auth, settings.host) == (0, AuthMode.TOKEN, "0.0.0.0")
    assert settings.allowed_origins == ("https://a.example", "https://b.example")
    assert (settings.demo_content, settings.statement_timeout) == (False, 0.5)
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgres://ada:secret@db.example/mirror"
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-secret"


WRONG = [
    ("MIRRORGRAPH_PORT", "http", "integer"),
    ("MIRRORGRAPH_PORT", "65536", "less than or equal to 65535"),
    ("MIRRORGRAPH_PORT", "-1", "greater than or equal to 0"),
    ("MIRRORGRAPH_POOL_SIZE", "0", "greater than or equal to 1"),
    ("MIRRORGRAPH_POOL_SIZE", "201", "less than or equal to 200"),
    ("MIRRORGRAPH_MAX_DEPTH", "101", "less than or equal to 100"),
    ("MIRRORGRAPH_STATEMENT_TIMEOUT", "0", "greater than 0"),
    ("MIRRORGRAPH_STATEMENT_TIMEOUT", "86401", "less than or equal to 86400"),
    ("MIRRORGRAPH_STATEMENT_TIMEOUT", "inf", "finite number"),
    ("MIRRORGRAPH_STATEMENT_TIMEOUT", "nan", "finite number"),
    ("MIRRORGRAPH_AUTH", "open", "'local' or 'token'"),
    ("MIRRORGRAPH_MAX_REQUEST_BYTES", "1023", "greater than or equal to 1024"),
    ("MIRRORGRAPH_MAX_DEPTH", "0", "greater than or equal to 1"),
    ("MIRRORGRAPH_OPERATION_TIMEOUT", "0", "greater than 0"),
    ("MIRRORGRAPH_HEARTBEAT", "inf", "finite number"),
    ("MIRRORGRAPH_SUGGESTIONS", "perhaps", "valid boolean"),
    ("MIRRORGRAPH_PROVIDER", "other", "'demo', 'openai' or 'anthropic'"),
    ("MIRRORGRAPH_DEMO_RATE", "-1", "greater than or equal to 0"),
    ("MIRRORGRAPH_DEMO_RATE", "inf", "finite number"),
    ("MIRRORGRAPH_FIRST_TOKEN_TIMEOUT", "0", "greater than 0"),
    ("MIRRORGRAPH_SILENCE_TIMEOUT", "soon", "valid number"),
    ("MIRRORGRAPH_CONCURRENT_RUNS", "0", "greater than or equal to 1"),
    ("MIRRORGRAPH_LEASE_SECONDS", "0.5", "greater than 0.5"),
    ("MIRRORGRAPH_ASSETS_URL", "https://bucket", "must be like s3://bucket"),
    ("MIRRORGRAPH_ASSETS_URL", "s3://", "must be like s3://bucket"),
    ("MIRRORGRAPH_ASSETS_ENDPOINT", "127.0.0.1:9000", "must begin with http:// or https://"),
    ("MIRRORGRAPH_ASSETS_MAX_BYTES", "0", "greater than or equal to 1"),
    ("MIRRORGRAPH_ASSETS_RETENTION_DAYS", "0", "greater than 0"),
    ("MIRRORGRAPH_DEMO_CONTENT", "perhaps", "valid boolean"),
    ("MIRRORGRAPH_LOG_FORMAT", "xml", "'console' or 'json'"),
    ("MIRRORGRAPH_LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ("DATABASE_URL", "mysql://ada:secret@db.example/mirror", "must begin with postgresql://"),
    ("DATABASE_URL", "secret", "must begin with postgresql://"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "must begin with http:// or https://"),
]


@pytest.mark.parametrize(("name", "value", "advice"), WRONG)
def test_a_wrong_setting_stops_with_its_name_and_what_to_change(
    environment: Setter, name: str, value: str, advice: str
) -> None:
    environment(**{name: value})
    message = refusal()
    assert message.startswith(f"{name}: ")
    assert advice in message
    assert "secret" not in message


def test_several_wrong_settings_are_told_together(environment: Setter) -> None:
    environment(MIRRORGRAPH_PORT="x", MIRRORGRAPH_POOL_SIZE="0", DATABASE_URL="mysql://secret")
    message = refusal()
    assert [part.partition(":")[0] for part in message.split("; ")] == [
        "MIRRORGRAPH_PORT",
        "DATABASE_URL",
        "MIRRORGRAPH_POOL_SIZE",
    ]
    assert "secret" not in message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", "a\nb"])
def test_local_mode_is_refused_where_others_could_reach_it(environment: Setter, host: str) -> None:
    environment(MIRRORGRAPH_HOST=host)
    message = refusal()
    assert "MIRRORGRAPH_AUTH=local" in message
    assert f"MIRRORGRAPH_HOST is {host!r}" in message
    assert "set MIRRORGRAPH_HOST=127.0.0.1 or MIRRORGRAPH_AUTH=token" in message
    environment(MIRRORGRAPH_AUTH="token")
    assert load_settings().host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_local_mode_serves_any_loopback_address(environment: Setter, host: str) -> None:
    environment(MIRRORGRAPH_HOST=host)
    assert load_settings().host == host


@pytest.mark.parametrize(
    ("given", "is_given"),
    [
        ({}, True),
        ({"MIRRORGRAPH_AUTH": "token"}, False),
        ({"MIRRORGRAPH_AUTH": "token", "MIRRORGRAPH_SUGGESTIONS": "true"}, True),
        ({"MIRRORGRAPH_SUGGESTIONS": "false"}, False),
    ],
)
def test_suggestions_are_given_in_local_mode_unless_told_otherwise(
    environment: Setter, given: dict[str, str], *, is_given: bool
) -> None:
    environment(**given)
    assert load_settings().gives_suggestions is is_given


def test_the_keys_of_a_bucket_come_together(environment: Setter) -> None:
    environment(MIRRORGRAPH_ASSETS_KEY="secret")
    assert refusal() == (
        "MIRRORGRAPH_ASSETS_KEY_ID and MIRRORGRAPH_ASSETS_KEY are given together or not at all"
    )
    environment(MIRRORGRAPH_ASSETS_KEY_ID="id")
    assert "secret" not in repr(load_settings()).replace("SecretStr", "")


def test_trusted_documents_alone_need_their_file(environment: Setter) -> None:
    environment(MIRRORGRAPH_TRUSTED_DOCUMENTS_ONLY="true")
    assert refusal() == (
        "MIRRORGRAPH_TRUSTED_DOCUMENTS_ONLY needs a file of documents: name it in "
        "MIRRORGRAPH_TRUSTED_DOCUMENTS"
    )
    environment(MIRRORGRAPH_TRUSTED_DOCUMENTS="documents.json")
    assert load_settings().trusted_documents_only


def test_secrets_never_show(environment: Setter) -> None:
    environment(
        DATABASE_URL="postgresql://ada:secret@db.example/mirror",
        OPENAI_API_KEY="sk-secret",
        ANTHROPIC_API_KEY="ant-secret",
    )
    settings = load_settings()
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert "secret" not in shown.replace("SecretStr", "")
    environment(MIRRORGRAPH_PORT="x")
    assert "secret" not in refusal()


def test_settings_cannot_be_changed() -> None:
    settings = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]
