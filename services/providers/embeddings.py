"""Asks a provider for embeddings, by OpenAI's interface, which most providers imitate.

Whatever goes wrong is a ProviderError, as with answers; what a vector must be is not known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import openai

from services.providers import failures
from services.providers.base import ProviderError
from services.providers.openai_compatible import connect

_NO_KEY = "not-needed"
_KEY = "the provider's key"
_ADDRESS = "the provider's address"


async def embed(
    base_url: str, key: str | None, model: str, texts: Sequence[str], *, within: float
) -> list[list[float]]:
    """The vectors of texts, in their order, as the provider gives them. `within` is in seconds.

    Raises ProviderError.
    """
    key = failures.checked_key(key, _KEY) if key else _NO_KEY
    origin = failures.Origin(model, key, _KEY, _ADDRESS)
    client = connect(key, base_url)
    try:
        async with asyncio.timeout(within):
            answer = await client.embeddings.create(
                model=model, input=list(texts), encoding_format="float"
            )
        return [
            [float(value) for value in each.embedding]
            for each in sorted(answer.data, key=lambda each: each.index)
        ]
    except TimeoutError:
        raise ProviderError(
            "TIMED_OUT", "The provider took too long to embed. Try again.", retryable=True
        ) from None
    except openai.APIStatusError as error:
        headers = error.response.headers
        raise failures.error_answer(error.status_code, error.body, origin, headers) from None
    except openai.APIConnectionError:
        raise failures.unreachable(origin) from None
    except openai.APIError as error:
        raise failures.error_answer(None, error.body, origin) from None
    except Exception:
        # An answer of another form than was asked for.
        raise failures.broken_stream() from None
    finally:
        await client.close()
