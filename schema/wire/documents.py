"""The document cache: what was said of a document once is not worked out again.

Under the SHA-256 of its text it keeps the parsed document or its errors, the kinds of its
operations, and how to compute their costs. It also serves as the store of automatic persisted
queries; trusted documents come from a file and are never dropped.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    OverlappingFieldsCanBeMergedRule,
    Source,
    ValidationContext,
    parse,
    specified_rules,
    validate,
)
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule

from schema.wire.errors import (
    NULL_REFUSED,
    ErrorBody,
    RequestError,
    error_body,
    located_body,
    request_error,
)
from schema.wire.limits import Cost, CostReader, Limits, check_counts, refuse_tokens
from schema.wire.requests import OperationRequest


class FrugalOverlapRule(OverlappingFieldsCanBeMergedRule):
    """The rule whose work grows with the square of the document, with less of it to spend than
    graphql-core would: a tenth of a second of comparisons instead of several seconds.
    """

    COMPARISONS = 30_000

    def __init__(self, context: ValidationContext) -> None:
        super().__init__(context)
        self.rule_context.remaining_complexity_budget = self.COMPARISONS


class NoNullRule(MaybeNullValidationRule):
    """Null for what can only be left out; Strawberry's own words are meant for us."""

    def report_error(self, error: GraphQLError) -> None:
        """Say it in the server's words."""
        super().report_error(GraphQLError(NULL_REFUSED, error.nodes))


RULES = (
    *(
        FrugalOverlapRule if each is OverlappingFieldsCanBeMergedRule else each
        for each in specified_rules
    ),
    # Those that Strawberry adds to the specification's own.
    NoNullRule,
    OneOfInputValidationRule,
)

# What a document takes in memory. Measured over a hundred of all sizes and shapes, a parsed one
# takes 40 to 130 bytes for each character, most where it has no white space; one that is nothing
# but a list of digits takes 180.
_WEIGHT_OF_TEXT = 130
_WEIGHT_OF_ENTRY = 3_000
_WEIGHT_OF_ERROR = 1_000

# How graphql-core says that its parser met its limit of tokens.
_TOO_MANY_TOKENS = "Syntax Error: Document contains more than"
# How it says that fields repeat too often, or fragments nest too deeply, to go on.
_ABORTED = "Validation aborted."
# What stands before a message of Python's own.
_SAID_BY_PYTHON = ", but encountered error "


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a valid document."""

    name: str | None
    type: OperationType
    cost: Cost


@dataclass(frozen=True, slots=True)
class Document:
    """What is known of a document: its operations, or why it is refused."""

    id: str
    ast: DocumentNode | None
    operations: Mapping[str | None, Operation]
    status: int = 200
    errors: tuple[ErrorBody, ...] = ()

    @property
    def tree(self) -> DocumentNode:
        """The parsed document; only a valid one has it."""
        assert self.ast is not None
        return self.ast

    def operation(self, name: str | None) -> Operation:
        """The operation to execute; raises RequestError."""
        if self.errors:
            raise RequestError(self.status, self.errors)
        if name is None and len(self.operations) == 1:
            return next(iter(self.operations.values()))
        if name in self.operations and name is not None:
            return self.operations[name]
        names = ", ".join(sorted(each or "one without a name" for each in self.operations))
        if name is None:
            said = f"The document has several operations: say in operationName which, of {names}."
        else:
            said = f"The document has no operation {name!r}, but {names}."
        raise request_error(422, "OPERATION_RESOLUTION_FAILURE", said)


class DocumentReader:
    """Parses, counts, validates: everything that is the same for each request of a document."""

    def __init__(
        self, schema: GraphQLSchema, limits: Limits, *, suggestions: bool, introspection: bool
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._hides_suggestions = not suggestions
        self._rules = RULES if introspection else (*RULES, NoSchemaIntrospectionCustomRule)

    def read(self, id: str, text: str) -> Document:
        """What is to know of a document; never raises for what is wrong with it."""
        try:
            return self._read(id, text)
        except RequestError as error:
            return Document(id, None, {}, error.status, tuple(error.errors))

    def _read(self, id: str, text: str) -> Document:
        try:
            ast = parse(Source(text, "GraphQL request"), max_tokens=self._limits.tokens)
        except GraphQLSyntaxError as error:
            if error.message.startswith(_TOO_MANY_TOKENS):
                raise refuse_tokens(self._limits) from None
            raise RequestError(400, [located_body("GRAPHQL_PARSE_FAILED", error)]) from None
        check_counts(ast, self._limits)
        errors = validate(self._schema, ast, self._rules, hide_suggestions=self._hides_suggestions)
        if errors:
            raise RequestError(422, [_validation_body(each) for each in errors])
        costs = CostReader(self._schema, ast)
        operations = {
            (each.name.value if each.name else None): Operation(
                each.name.value if each.name else None, each.operation, costs.cost(each)
            )
            for each in ast.definitions
            if isinstance(each, OperationDefinitionNode)
        }
        return Document(id, ast, operations)


def _validation_body(error: GraphQLError) -> ErrorBody:
    if error.message == _ABORTED:
        return error_body(
            "VALIDATION_LIMIT",
            "The document takes too long to check: repeat fewer fields, nest fewer fragments.",
        )
    body = located_body("GRAPHQL_VALIDATION_FAILED", error)
    said, by_python, _ = error.message.partition(_SAID_BY_PYTHON)
    if by_python and error.original_error is not None:
        body["message"] = f"{said}."
    return body


class DocumentCache:
    """Documents by their ids, the least recently used dropped first.

    Bounded in entries and in bytes, which are estimated from the texts.
    """

    def __init__(
        self,
        reader: DocumentReader,
        limits: Limits,
        *,
        entries: int,
        size: int,
        trusted: Mapping[str, str] | None = None,
        trusted_only: bool = False,
        own: Iterable[str] = (),
    ) -> None:
        """`own` are texts that the server executes for itself, trusted in any case."""
        self._reader = reader
        self._limits = limits
        self._most_entries = entries
        self._most_bytes = size
        self._kept: OrderedDict[str, tuple[Document, int]] = OrderedDict()
        # Trusted documents are read when first asked for.
        self._trusted_texts = {**(trusted or {}), **{_id_of(text): text for text in own}}
        self._trusted: dict[str, Document] = {}
        self._is_closed = trusted_only
        self.bytes = self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._kept) + len(self._trusted)

    def find(self, request: OperationRequest) -> Document:
        """The document that a request means, read now if it is new. Raises Refused."""
        if request.query is None:
            assert request.document_id is not None
            return self._named(request.document_id, is_automatic=request.is_automatic)
        if len(request.query) > self._limits.document_bytes:
            raise request_error(
                413,
                "DOCUMENT_TOO_LARGE",
                f"A document has at most {self._limits.document_bytes:,} characters.",
                limit=self._limits.document_bytes,
            )
        document_id = _id_of(request.query)
        if request.document_id not in {None, document_id}:
            raise request_error(
                422, "DOCUMENT_HASH_MISMATCH", "The hash is not the SHA-256 of the document's text."
            )
        known = self._known(document_id)
        if known is not None:
            return known
        if self._is_closed:
            raise request_error(
                403,
                "DOCUMENT_NOT_TRUSTED",
                "This server executes registered documents alone: name one in documentId.",
            )
        return self._keep(self._reader.read(document_id, request.query), len(request.query))

    def _named(self, id: str, *, is_automatic: bool) -> Document:
        known = self._known(id)
        if known is not None:
            return known
        if is_automatic:
            # Apollo's clients send the text as well when they read exactly these two.
            raise request_error(404, "PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
        raise request_error(
            404, "DOCUMENT_NOT_FOUND", "No document of that id is registered; send its text."
        )

    def _known(self, id: str) -> Document | None:
        kept = self._kept.get(id)
        if kept is not None:
            self._kept.move_to_end(id)
            self.hits += 1
            return kept[0]
        trusted = self._trusted.get(id)
        if trusted is None and id in self._trusted_texts:
            trusted = self._trusted[id] = self._reader.read(id, self._trusted_texts[id])
        if trusted is not None:
            self.hits += 1
        return trusted

    def _keep(self, document: Document, length: int) -> Document:
        self.misses += 1
        # A document that is refused keeps its errors and no tree.
        weight = _WEIGHT_OF_ENTRY + (
            length * _WEIGHT_OF_TEXT if document.ast else len(document.errors) * _WEIGHT_OF_ERROR
        )
        if weight > self._most_bytes:
            return document
        self._kept[document.id] = (document, weight)
        self.bytes += weight
        while len(self._kept) > self._most_entries or self.bytes > self._most_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped
        return document


def _id_of(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class ManifestError(ValueError):
    """The file of trusted documents cannot be used; the message says why in one line."""


def read_manifest(path: Path) -> dict[str, str]:
    """Trusted documents by id, from a JSON file as Relay (an object from hash to text) or Apollo
    (`operations` with `body`) write it. Every document goes by the SHA-256 of its text, and by
    the file's own name for it as well. Raises ManifestError.
    """
    try:
        given = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ManifestError(f"{path} cannot be read ({error.strerror})") from None
    except orjson.JSONDecodeError:
        raise ManifestError(f"{path} is not JSON") from None
    texts = _listed_texts(given)
    if texts is None:
        raise ManifestError(f"{path} is neither Relay's nor Apollo's manifest of documents")
    return {**texts, **{_id_of(text): text for text in texts.values()}}


def _listed_texts(given: Any) -> dict[str, str] | None:
    if isinstance(given, dict) and isinstance(given.get("operations"), list):
        listed = given["operations"]
        if not all(isinstance(each, dict) for each in listed):
            return None
        given = {each.get("id"): each.get("body") for each in listed}
    if not isinstance(given, dict):
        return None
    if not all(isinstance(each, str) for pair in given.items() for each in pair):
        return None
    return given
