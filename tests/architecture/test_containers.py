"""The container files without a container engine: linter, published schema, our own rules."""

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE_TEXT = (ROOT / "compose.yaml").read_text()
PASSWORD = "${POSTGRES_PASSWORD:?is the password that the database gets}"


def run_tool(name: str, *arguments: str) -> str:
    """What a tool of this environment prints; fails with that text when the tool is not content."""
    command = Path(sysconfig.get_path("scripts"), name)
    done = subprocess.run(
        [command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def final_stage() -> list[list[str]]:
    """The instructions of the last stage, continued lines joined, as words."""
    stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :].replace("\\\n", " ")
    lines = (line for line in stage.splitlines() if not line.startswith("#"))
    return [line.split() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(COMPOSE_TEXT)
    return loaded


def test_the_linter_finds_nothing_in_the_dockerfile() -> None:
    assert run_tool("hadolint", "--no-color", "Dockerfile") == ""


def test_the_compose_file_follows_the_published_schema() -> None:
    run_tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_server_runs_as_a_fixed_user_without_rights() -> None:
    users = [words[1] for words in final_stage() if words[0] == "USER"]
    assert users == ["10001:10001"]


def test_the_image_asks_callers_who_they_are() -> None:
    environment = " ".join(" ".join(words) for words in final_stage() if words[0] == "ENV")
    assert "MIRRORGRAPH_HOST=0.0.0.0" in environment
    assert "MIRRORGRAPH_AUTH=token" in environment


def test_the_image_holds_each_layer_and_the_build_context_lets_it_in() -> None:
    copies = [words[1:] for words in final_stage() if words[0] == "COPY"]
    from_context = {words[0].rstrip("/") for words in copies if not words[0].startswith("--")}
    assert from_context == {"schema", "resolvers", "services", "db", "migrations", "alembic.ini"}
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(allowed) == from_context | {"explorer", "requirements.lock"}
    assert [name for name in allowed if not (ROOT / name).exists()] == []


def test_the_image_stops_and_is_watched_as_an_orchestrator_expects() -> None:
    words = {line[0]: " ".join(line[1:]) for line in final_stage()}
    assert words["STOPSIGNAL"] == "SIGTERM"
    assert words["EXPOSE"] == "8000"
    assert "http://127.0.0.1:8000/readyz" in words["HEALTHCHECK"]
    # As a list: a shell between would keep the signal for itself.
    assert words["CMD"] == '["python", "-m", "schema.cli", "serve"]'


def test_the_server_waits_for_a_healthy_database(compose: dict[str, Any]) -> None:
    server, database = compose["services"]["server"], compose["services"]["database"]
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert {server["restart"], database["restart"]} == {"unless-stopped"}


def test_the_data_outlives_the_container(compose: dict[str, Any]) -> None:
    assert compose["services"]["database"]["volumes"] == ["database:/var/lib/postgresql/data"]
    assert compose["services"]["server"]["volumes"] == ["files:/app/data"]
    assert set(compose["volumes"]) == {"database", "files"}


def test_there_is_no_default_password(compose: dict[str, Any]) -> None:
    database = compose["services"]["database"]["environment"]
    address = compose["services"]["server"]["environment"]["DATABASE_URL"]
    assert database["POSTGRES_PASSWORD"] == PASSWORD
    assert address == (
        f"postgresql://{database['POSTGRES_USER']}:{PASSWORD}@database:5432/{database['POSTGRES_DB']}"
    )
