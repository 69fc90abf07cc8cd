from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from db.engine import Database
from db.enums import RoleName
from db.paging import PageRequest
from services import accounts
from services.access import Viewer
from services.accounts import IdempotencyClaim, SignIn
from services.errors import Conflict, Forbidden, Invalid
from tests.conftest import People


async def test_a_token_signs_its_user_in_with_their_roles(database: Database) -> None:
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, "Ada")
        await accounts.grant_role(writing, user.id, RoleName.AUDITOR)
        await accounts.grant_role(writing, user.id, RoleName.AUDITOR)
        token = await accounts.issue_token(writing, user.id)
    async with database.reading() as reading:
        found = await accounts.find_sign_in(reading, token)
        assert found == SignIn(Viewer(user.id, frozenset({RoleName.AUDITOR})), None)
        assert await accounts.find_sign_in(reading, token + "x") is None
        assert await accounts.find_sign_in(reading, "") is None


async def test_a_user_without_roles_is_signed_in_with_none(database: Database) -> None:
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, "Ada")
        token = await accounts.issue_token(writing, user.id)
        found = await accounts.find_sign_in(writing, token)
        assert found == SignIn(Viewer(user.id, frozenset()), None)


async def test_expired_and_revoked_tokens_sign_nobody_in(database: Database) -> None:
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, "Ada")
        past = datetime.now(UTC) - timedelta(seconds=1)
        expired = await accounts.issue_token(writing, user.id, expires_at=past)
        lasting = await accounts.issue_token(writing, user.id, past + timedelta(hours=1))
        assert await accounts.find_sign_in(writing, expired) is None
        found = await accounts.find_sign_in(writing, lasting)
        assert found is not None
        assert found.viewer == Viewer(user.id)
        assert found.seconds_left is not None
        assert 3_500 < found.seconds_left < 3_600
        assert await accounts.revoke_tokens(writing, user.id) == 2
        assert await accounts.find_sign_in(writing, lasting) is None


async def test_tokens_are_not_in_the_database(database: Database) -> None:
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, "Ada")
        token = await accounts.issue_token(writing, user.id)
        rows = await writing._connection.fetch("SELECT s::text FROM login_sessions s")
    assert len(rows) == 1
    assert token not in rows[0]["s"]
    assert token.removeprefix("mg_") not in rows[0]["s"]


async def test_names_of_users_are_one_whatever_their_case(database: Database) -> None:
    async with database.writing() as writing:
        first = await accounts.ensure_user(writing, "Ada")
        assert (await accounts.ensure_user(writing, " aDA ")).id == first.id
        with pytest.raises(Invalid) as caught:
            await accounts.ensure_user(writing, "  ")
        assert caught.value.code == "TEXT_EMPTY"


async def test_a_user_whom_several_servers_make_at_once_is_made_once(database: Database) -> None:
    async def ensure() -> str:
        async with database.writing() as writing:
            return (await accounts.ensure_user(writing, "Ada")).id

    ids = await asyncio.gather(*(ensure() for _ in range(4)))
    assert len(set(ids)) == 1


async def test_acts_are_read_by_who_did_them_and_by_auditors(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        await accounts.record_act(writing, people.owner, "one", None)
        await accounts.record_act(writing, people.stranger, "two", "tree_x", {"n": 1})

        async def actions(viewer: Viewer) -> list[str]:
            page = await accounts.list_acts(writing, viewer, PageRequest())
            return [act.action for act in page.nodes]

        assert await actions(people.owner) == ["one"]
        assert await actions(people.anonymous) == []
        assert await actions(Viewer(None, frozenset({RoleName.AUDITOR}))) == ["two", "one"]
        administrator = Viewer(people.owner.user_id, frozenset({RoleName.ADMINISTRATOR}))
        assert await actions(administrator) == ["one"]
    with pytest.raises(asyncpg.PostgresError, match="never change"):
        async with database.writing() as writing:
            await writing._connection.execute("UPDATE audit_events SET action = 'other'")


async def test_a_key_is_claimed_once_and_answers_the_same_afterwards(
    database: Database, people: People
) -> None:
    """Rules I1 to I3."""
    claim = IdempotencyClaim("key", "hash", "treeCreate")
    async with database.writing() as writing:
        assert await accounts.claim_key(writing, people.owner, claim) is None
        await accounts.keep_answer(writing, people.owner, claim, {"tree": "tree_1"})
    async with database.writing() as writing:
        assert await accounts.claim_key(writing, people.owner, claim) == {"tree": "tree_1"}
        other_field = IdempotencyClaim("key", "hash", "second")
        assert await accounts.claim_key(writing, people.owner, other_field) is None
        assert await accounts.claim_key(writing, people.stranger, claim) is None
        other_request = IdempotencyClaim("key", "other", "third")
        with pytest.raises(Conflict) as caught:
            await accounts.claim_key(writing, people.owner, other_request)
        assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"


async def test_a_key_goes_with_the_change_that_was_rolled_back(
    database: Database, people: People
) -> None:
    claim = IdempotencyClaim("key", "hash", "treeCreate")

    async def change_that_fails() -> None:
        async with database.writing() as writing:
            assert await accounts.claim_key(writing, people.owner, claim) is None
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await change_that_fails()
    async with database.writing() as writing:
        assert await accounts.claim_key(writing, people.owner, claim) is None


async def test_old_keys_are_forgotten(database: Database, people: People) -> None:
    claim = IdempotencyClaim("key", "hash", "treeCreate")
    async with database.writing() as writing:
        await accounts.claim_key(writing, people.owner, claim)
        await writing._connection.execute(
            "UPDATE idempotency SET created_at = now() - interval '25 hours'"
        )
        renewed = IdempotencyClaim("key", "other", "treeCreate")
        assert await accounts.claim_key(writing, people.owner, renewed) is None


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "a\0b"])
async def test_bad_keys_are_refused(database: Database, people: People, key: str) -> None:
    async with database.writing() as writing:
        with pytest.raises(Invalid) as caught:
            await accounts.claim_key(writing, people.owner, IdempotencyClaim(key, "h", "f"))
        assert caught.value.code == "INVALID_IDEMPOTENCY_KEY"
        claim = IdempotencyClaim("key", "h", "f")
        with pytest.raises(Forbidden):
            await accounts.claim_key(writing, people.anonymous, claim)
