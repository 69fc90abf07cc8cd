"""Who calls: a bearer token or, in local mode, whoever reaches the server; and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from db.enums import RoleName
from db.reading import DATABASE_TROUBLE
from resolvers.context import Context, Engine
from schema.wire.errors import Refused
from services import accounts
from services.access import Viewer
from services.errors import Unavailable
from services.hub import Subscription

_OPERATORS = {RoleName.ADMINISTRATOR, RoleName.AUDITOR}

# How long to wait before looking again when the end of a sign-in cannot be heard of.
_LOOK_AGAIN_SECONDS = 1.0


class SignedIn:
    """A caller of the wire layer (`schema.wire.execution.Caller`)."""

    def __init__(
        self,
        engine: Engine,
        viewer: Viewer,
        check_open: Callable[[], None],
        token: str | None = None,
    ) -> None:
        self._engine = engine
        self._viewer = viewer
        self._check_open = check_open
        # None in local mode, where nothing can be taken back.
        self._token = token

    @property
    def identity(self) -> str:
        """The user's id."""
        return self._viewer.signed_in_id

    def require_operator(self) -> None:
        """Raises Refused for everybody but those who run the server."""
        if self._token is not None and not self._viewer.roles & _OPERATORS:
            raise Refused(403, "FORBIDDEN", "This is for administrators and auditors.")

    def context(self, idempotency_key: str | None = None, request_hash: str = "") -> Context:
        """A context for one operation. Raises Refused while the server stops."""
        self._check_open()
        return Context(
            engine=self._engine,
            viewer=self._viewer,
            idempotency_key=idempotency_key,
            request_hash=request_hash,
        )

    async def signed_out(self) -> None:
        """Return when the token is revoked or has expired."""
        if self._token is None:
            await asyncio.Event().wait()
            return
        topic = accounts.sign_in_topic(self.identity)
        is_signed_in = True
        while is_signed_in:
            # Listened for before looking, so that no change falls in between.
            changes = self._engine.hub.subscribe(topic)
            try:
                is_signed_in = await self._is_signed_in_until(changes)
            except (Unavailable, *DATABASE_TROUBLE):
                # Not known now; streams end for reasons of their own while the database is away.
                changes.close()
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            finally:
                changes.close()

    async def _is_signed_in_until(self, changes: Subscription) -> bool:
        """Whether the token is good; when it is, wait until that may no longer be so."""
        assert self._token is not None
        async with self._engine.database.reading() as reading:
            found = await accounts.find_sign_in(reading, self._token)
        if found is not None:
            # A change of roles is a change of the sign-in as well.
            self._viewer = found.viewer
            with suppress(TimeoutError):
                async with asyncio.timeout(found.seconds_left):
                    await changes.wait()
        return found is not None


async def sign_in(
    headers: Mapping[str, str],
    engine: Engine,
    local_viewer: Viewer | None,
    check_open: Callable[[], None],
) -> SignedIn:
    """Whom these headers (in lower case) sign in. Raises Refused."""
    check_open()
    if local_viewer is not None:
        return SignedIn(engine, local_viewer, check_open)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        async with engine.database.reading() as reading:
            found = await accounts.find_sign_in(reading, token.strip())
        if found is not None:
            return SignedIn(engine, found.viewer, check_open, token.strip())
    raise Refused(
        401,
        "UNAUTHENTICATED",
        "Send a bearer token; make one with make user.",
        headers={"www-authenticate": "Bearer"},
    )
