"""Stored files: their bytes, their rows, and what becomes of those that nothing shows.

What shows them is in `services/attachments.py` and in stories.
Source: spec aventuras, assets; cleanup on delete.
"""

from services.assets.keeping import (
    ASSETS,
    ReadFile,
    delete_asset,
    find_by_content,
    keep_file,
    list_assets,
    read_file,
    remove_bytes,
    store_bytes,
)
from services.assets.settling import settle_references
from services.assets.storing import Bucket, FileStore, open_store
from services.assets.sweeping import Sweeper

__all__ = [
    "ASSETS",
    "Bucket",
    "FileStore",
    "ReadFile",
    "Sweeper",
    "delete_asset",
    "find_by_content",
    "keep_file",
    "list_assets",
    "open_store",
    "read_file",
    "remove_bytes",
    "settle_references",
    "store_bytes",
]
