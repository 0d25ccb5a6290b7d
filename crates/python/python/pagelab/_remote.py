"""Traces of workers, at a path or a URL: what tells that one changed, and failures that travel."""

import hashlib
import os
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, TypeVar

from ._pagelab import PagelabError

T = TypeVar("T")

# Blocks of which the fingerprint of a content is made; of a URL each is a request.
FILE_BLOCKS = 64
URL_BLOCKS = 8
BLOCK_BYTES = 16 << 10


class NoRanges(PagelabError):
    """The server sends a file only as a whole."""


def is_url(path: str) -> bool:
    """Whether fsspec finds it."""
    return "://" in path


def _failure(url: str, error: Exception) -> Exception:
    """Why a URL cannot be read: fsspec raises FileNotFoundError for most reasons, and the
    exceptions of HTTP clients cannot be pickled."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in causes:
        status = getattr(cause, "status", None)
        if isinstance(status, int):
            kinds = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError, 410: FileNotFoundError}
            return kinds.get(status, PagelabError)(f"{url}: HTTP {status} {getattr(cause, 'message', '')}".strip())
    for cause in causes:
        if isinstance(cause, TimeoutError):
            return TimeoutError(f"{url}: no answer in time")
        # aiohttp's are plain OSErrors.
        if isinstance(cause, ConnectionError) or type(cause).__module__.startswith("aiohttp."):
            return ConnectionError(f"{url}: {cause}")
    for kind in (FileNotFoundError, PermissionError):
        if isinstance(error, kind):
            return kind(f"{url}: {error}" if url not in str(error) else str(error))
    return PagelabError(f"{url}: {error or type(error).__name__}")


def told(url: str, call: Callable[[], T]) -> T:
    """What `call` gives; why fsspec failed, as built-in exceptions or PagelabError, with the URL."""
    try:
        return call()
    except PagelabError:
        raise
    except Exception as error:
        failure = _failure(url, error)
    # Not within the handler: an exception takes its context along, which cannot be pickled.
    raise failure


class _Remote:
    """The file at a URL, read in parts."""

    def __init__(self, url: str, **options: Any) -> None:
        import fsspec

        self._url = url
        self._file = told(url, lambda: fsspec.open(url, "rb", **options).open())

    def _told(self, call: Callable[[], T]) -> T:
        def without_ranges() -> T:
            try:
                return call()
            except ValueError:
                pass
            raise NoRanges(
                f"{self._url}: the server sends no parts of files; give each worker a copy, or use a server with HTTP ranges"
            )

        return told(self._url, without_ranges)

    def read(self, count: int) -> bytes:
        return self._told(lambda: self._file.read(count))

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._told(lambda: self._file.seek(offset, whence))

    def close(self) -> None:
        self._file.close()


def source(path: str) -> object:
    """A path as it is; a URL as an open file, which fetches ranges of bytes."""
    return _Remote(path) if is_url(path) else path


def _digest(file: _Remote | BinaryIO, length: int, blocks: int) -> str:
    """Of some blocks from the first to the last; of a short file of everything."""
    hashed = hashlib.blake2b(str(length).encode(), digest_size=16)
    last = max(0, length - BLOCK_BYTES)
    if length <= blocks * BLOCK_BYTES:
        hashed.update(file.read(length))
    else:
        for number in range(blocks):
            file.seek(last * number // (blocks - 1))
            hashed.update(file.read(BLOCK_BYTES))
    return hashed.hexdigest()


class Fingerprint(NamedTuple):
    """What differs after a trace was rewritten."""

    # What the file system or server tells: size, times, inode or ETag.
    identity: object
    # Of the content: the same wherever there is a copy.
    content: str


def fingerprint(path: str) -> Fingerprint:
    """That of a trace."""
    if not is_url(path):
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            return Fingerprint(identity, _digest(file, found.st_size, FILE_BLOCKS))
    return _fingerprint_of_url(path)


def _fingerprint_of_url(url: str) -> Fingerprint:
    import fsspec

    def look() -> dict:
        system, name = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        return system.info(name)

    info = told(url, look)
    identity = sorted((key, str(value)) for key, value in info.items())
    if not info.get("size"):
        return Fingerprint(identity, "")
    file = _Remote(url, cache_type="none")
    try:
        return Fingerprint(identity, _digest(file, info["size"], URL_BLOCKS))
    except NoRanges:
        return Fingerprint(identity, "")
    finally:
        file.close()
