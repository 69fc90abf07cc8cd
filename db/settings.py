"""Every setting of the server, read from the environment once and passed on.

Nothing else in the project reads the environment, so importing any module works with an empty one.
"""

from __future__ import annotations

import ipaddress
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PROJECT_ROOT = Path(__file__).resolve().parent.parent


class SettingsError(Exception):
    """A setting is wrong; the message is one line that says which and what to change."""


class AuthMode(StrEnum):
    """How callers prove who they are."""

    LOCAL = "local"
    TOKEN = "token"


class Settings(BaseSettings):
    """The settings; each is described in the README's table under its environment name."""

    model_config = SettingsConfigDict(
        env_prefix="MIRRORGRAPH_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        # A time-out of infinity or not-a-number would only fail where it is used.
        allow_inf_nan=False,
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    data_dir: Path = PROJECT_ROOT / "data"
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    pool_size: int = Field(default=8, ge=1, le=200)
    statement_timeout: float = Field(default=30.0, gt=0, le=86_400)
    auth: AuthMode = AuthMode.LOCAL
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = ()
    # What a client may ask for; schema/wire/limits.py says what is counted.
    max_request_bytes: int = Field(default=20 * 1024 * 1024, ge=1024)
    max_document_bytes: int = Field(default=100_000, ge=100)
    max_tokens: int = Field(default=2_000, ge=10)
    # Far deeper, and Python's own stack would end an operation before we do.
    max_depth: int = Field(default=16, ge=1, le=100)
    max_aliases: int = Field(default=50, ge=0)
    max_duplicate_fields: int = Field(default=50, ge=0)
    max_directives: int = Field(default=50, ge=0)
    max_cost: int = Field(default=10_000, ge=1)
    max_batch: int = Field(default=10, ge=1)
    max_files: int = Field(default=10, ge=1)
    max_operations: int = Field(default=100, ge=1)
    max_connections: int = Field(default=2_000, ge=1)
    operation_timeout: float = Field(default=30.0, gt=0)
    request_timeout: float = Field(default=60.0, gt=0)
    # How the wire behaves.
    legacy_status_codes: bool = False
    introspection: bool = True
    suggestions: bool | None = None
    heartbeat: float = Field(default=12.0, gt=0)
    init_timeout: float = Field(default=10.0, gt=0)
    document_cache_entries: int = Field(default=2_000, ge=1)
    document_cache_bytes: int = Field(default=128 * 1024 * 1024, ge=1024)
    trusted_documents: Path | None = None
    trusted_documents_only: bool = False
    provider: Literal["demo", "openai", "anthropic"] = "demo"
    model: str | None = None
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    demo_rate: float = Field(default=30.0, ge=0)
    first_token_timeout: float = Field(default=60.0, gt=0)
    silence_timeout: float = Field(default=60.0, gt=0)
    provider_retries: int = Field(default=2, ge=0, le=10)
    context_tokens: int = Field(default=8_192, ge=1)
    answer_tokens: int = Field(default=1_024, ge=0)
    concurrent_runs: int = Field(default=32, ge=1)
    runs_per_user: int = Field(default=8, ge=1)
    runs_per_character: int = Field(default=4, ge=1)
    queued_runs: int = Field(default=1_000, ge=1)
    # In whole days, as far back as PostgreSQL's calendar can go.
    run_retention_days: int = Field(default=30, ge=0, le=36_500)
    lease_seconds: float = Field(default=10.0, gt=0.5)
    cooling_off_days: float = Field(default=7.0, gt=0, le=3650)
    housekeeping_seconds: float = Field(default=60.0, gt=0)
    # Files of users; without an address in a folder of data_dir.
    assets_url: str | None = None
    assets_endpoint: str | None = None
    assets_region: str = "us-east-1"
    assets_key_id: str | None = None
    assets_key: SecretStr | None = None
    assets_max_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    assets_retention_days: float = Field(default=7.0, gt=0, le=3650)
    # Without a word the server's own model where the machine can run it.
    embedder: Literal["local", "none"] | None = None
    embedder_threads: int = Field(default=1, ge=1, le=64)
    demo_content: bool = True
    web_dir: Path = PROJECT_ROOT / "explorer" / "dist"
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _origins_from_text(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("database_url")
    @classmethod
    def _postgresql_only(cls, value: SecretStr | None) -> SecretStr | None:
        scheme = value.get_secret_value().partition("://")[0] if value else "postgresql"
        if scheme not in {"postgresql", "postgres"}:
            raise ValueError("must begin with postgresql://")
        return value

    @field_validator("assets_url")
    @classmethod
    def _bucket_only(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"s3://[a-z0-9.-]+(/[^?#]*)?", value):
            raise ValueError("must be like s3://bucket or s3://bucket/folder")
        return value

    @field_validator("otlp_endpoint", "assets_endpoint")
    @classmethod
    def _http_only(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value

    @model_validator(mode="after")
    def _trusted_documents_are_named(self) -> Settings:
        if self.trusted_documents_only and self.trusted_documents is None:
            raise ValueError(
                "MIRRORGRAPH_TRUSTED_DOCUMENTS_ONLY needs a file of documents: name it in "
                "MIRRORGRAPH_TRUSTED_DOCUMENTS"
            )
        return self

    @model_validator(mode="after")
    def _keys_come_together(self) -> Settings:
        if (self.assets_key_id is None) != (self.assets_key is None):
            raise ValueError(
                "MIRRORGRAPH_ASSETS_KEY_ID and MIRRORGRAPH_ASSETS_KEY "
                "are given together or not at all"
            )
        return self

    @model_validator(mode="after")
    def _context_has_room(self) -> Settings:
        if self.answer_tokens >= self.context_tokens:
            raise ValueError(
                "MIRRORGRAPH_ANSWER_TOKENS is part of MIRRORGRAPH_CONTEXT_TOKENS and must be less"
            )
        return self

    @property
    def gives_suggestions(self) -> bool:
        """Whether errors name fields that might have been meant: not in production, unless told."""
        return self.auth is AuthMode.LOCAL if self.suggestions is None else self.suggestions

    @model_validator(mode="after")
    def _local_mode_stays_on_loopback(self) -> Settings:
        # Local mode signs everyone in who reaches the port, so nobody else may reach it.
        if self.auth is AuthMode.LOCAL and not _is_loopback(self.host):
            raise ValueError(
                "MIRRORGRAPH_AUTH=local serves loopback only, but MIRRORGRAPH_HOST is "
                f"{self.host!r}: set MIRRORGRAPH_HOST=127.0.0.1 or MIRRORGRAPH_AUTH=token"
            )
        return self


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_settings() -> Settings:
    """Read the environment; raises SettingsError whose text is one line."""
    try:
        return Settings()
    except ValidationError as error:
        # Only names and reasons: a value may be a secret.
        raise SettingsError("; ".join(_one_line(each) for each in error.errors())) from None


def _one_line(error: object) -> str:
    assert isinstance(error, dict)
    location = [str(part) for part in error["loc"]]
    message = str(error["msg"]).removeprefix("Value error, ")
    if not location:
        return message
    name = location[0]
    if name in Settings.model_fields:
        name = f"MIRRORGRAPH_{name.upper()}"
    return f"{name}: {message[0].lower()}{message[1:]}"
