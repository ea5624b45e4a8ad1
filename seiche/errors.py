"""Every error that Seiche raises, as one tree.

    SeicheError
    ├── UserError                 the statement is wrong; nothing changed
    │   ├── SyntaxError_          42601      ├── DivisionByZero        22012
    │   ├── UndefinedObject       42704      ├── NumericOutOfRange     22003
    │   │   ├── UndefinedTable    42P01      ├── InvalidText           22P02
    │   │   ├── UndefinedColumn   42703      │   └── InvalidDatetime   22007
    │   │   ├── UndefinedFunction 42883      ├── InvalidParameter      22023
    │   │   ├── UndefinedSchema   3F000      │   └── OutOfDomain       2201W, 2201X, 2201E, 2201F, 2201B, 22011, 22014
    │   │   └── UndefinedDatabase 3D000      ├── NotNullViolation      23502
    │   │                                    ├── DependentObjects      2BP01
    │   ├── DuplicateObject       42P07      ├── FeatureNotSupported   0A000
    │   │   │                                │   └── TransactionTooLarge
    │   │   ├── DuplicateColumn   42701      ├── WrongObjectType       42809
    │   │   ├── DuplicateSchema   42P06      │
    │   │   ├── DuplicateDatabase 42P04      │
    │   │   ├── DuplicateUser     42710      │
    │   │   └── DuplicateAlias    42712      │
    │   ├── AmbiguousColumn       42702      ├── InvalidDefinition     42P17
    │   │                                    │   └── InvalidTable      42P16
    │   ├── DatatypeMismatch      42804      ├── GroupingError         42803
    │   │   └── CannotCast        42846      │   └── WindowingError    42P20
    │   ├── UndefinedParameter    42P02      │
    │   ├── InsufficientPrivilege 42501      ├── CardinalityViolation  21000
    │   ├── StatementTooComplex   54001      ├── ObjectNotReady        55000
    │   ├── UniqueViolation       23505      └── QueryCanceled         57014
    │   ├── StringTooLong         22001      ├── DatetimeOutOfRange    22008
    │   ├── DataException         22000      ├── TransactionState      25P01, 25P02, 25001
    │   ├── SerializationFailure  40001      ├── UndefinedCursor       34000
    │   ├── BadCopyFormat         22P04      ├── UndefinedStatement    26000
    │   ├── AmbiguousFunction     42725      ├── InvalidColumnReference 42P10
    │   ├── CharacterNotInRepertoire 22021   │
    │   ├── InvalidRecursion      42P19      ├── RecursionLimit        54000
    │   ├── IndeterminateType     42P18      ├── CursorBehind          24000
    │   │                                    └── ProtocolViolation     08P01  what a client sent is not a message
    │   └── InvalidLogin          28P01, 28000
    ├── SurroundingsError         the machine, the disk, the network or another process
    │   ├── StorageUnavailable    58030  retryable
    │   ├── DiskFull              53100  retryable
    │   ├── MetadataUnavailable   08006  retryable
    │   ├── CommitOutcomeUnknown  08007  not retryable: the checkpoint may or may not be durable
    │   ├── FolderNotUsable       58030
    │   ├── MetadataVersionError  55000
    │   ├── LeaseHeld             55006
    │   ├── LeaseLost             57P01  another process took the metadata database over; stop
    │   ├── ConfigError           F0000
    │   ├── JavaNotUsable         58000
    │   ├── ServerNotUsable       58000  the address is taken, a certificate cannot be read, no server runs
    │   ├── TooManyConnections    53300
    │   └── EngineStopped         57P01  the engine is stopping, stopped or broken; a restart recovers it
    ├── JobFailed                 58000  a job could not finish its part of an epoch, so the epoch was undone
    ├── InternalError             XX000  nobody foresaw it; the log tells more
    └── InvariantError            XX000  a promise inside the engine broke; the epoch stops before its commit

The first line of a message states one fact: lower case, object kind first, the user's names in double
quotes. `detail` is in sentences; `hint` says what to type next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class SeicheError(Exception):
    """Base of all errors. `code` is stable and shown by every interface; `sqlstate` is PostgreSQL's."""

    code: str = "internal"
    sqlstate: str = "XX000"
    retryable: ClassVar[bool] = False
    usual_detail: ClassVar[str | None] = None  # where none is given

    def __init__(
        self, message: str, *, detail: str | None = None, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail or self.usual_detail
        self.hint = hint
        self.position = position  # 1-based character of the statement, where known

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)


# --- the user's mistake ------------------------------------------------------------------------------


class UserError(SeicheError):
    code = "user_error"
    sqlstate = "22000"


class SyntaxError_(UserError):
    code = "syntax_error"
    sqlstate = "42601"


class UndefinedObject(UserError):
    code = "undefined_object"
    sqlstate = "42704"


class UndefinedTable(UndefinedObject):
    code = "undefined_table"
    sqlstate = "42P01"


class UndefinedColumn(UndefinedObject):
    code = "undefined_column"
    sqlstate = "42703"


class UndefinedFunction(UndefinedObject):
    code = "undefined_function"
    sqlstate = "42883"


class UndefinedSchema(UndefinedObject):
    code = "undefined_schema"
    sqlstate = "3F000"


class UndefinedDatabase(UndefinedObject):
    code = "undefined_database"
    sqlstate = "3D000"


class DuplicateObject(UserError):
    code = "duplicate_object"
    sqlstate = "42P07"


class DuplicateColumn(DuplicateObject):
    code = "duplicate_column"
    sqlstate = "42701"


class DuplicateSchema(DuplicateObject):
    code = "duplicate_schema"
    sqlstate = "42P06"


class DuplicateDatabase(DuplicateObject):
    code = "duplicate_database"
    sqlstate = "42P04"


class DuplicateUser(DuplicateObject):
    code = "duplicate_user"
    sqlstate = "42710"


class DuplicateAlias(DuplicateObject):
    code = "duplicate_alias"
    sqlstate = "42712"


class AmbiguousColumn(UserError):
    code = "ambiguous_column"
    sqlstate = "42702"


class AmbiguousFunction(UserError):
    code = "ambiguous_function"
    sqlstate = "42725"


class InvalidColumnReference(UserError):
    code = "invalid_column_reference"
    sqlstate = "42P10"


class DatatypeMismatch(UserError):
    code = "datatype_mismatch"
    sqlstate = "42804"


class CannotCast(DatatypeMismatch):
    code = "cannot_coerce"
    sqlstate = "42846"


class UndefinedParameter(UserError):
    code = "undefined_parameter"
    sqlstate = "42P02"


class InsufficientPrivilege(UserError):
    code = "insufficient_privilege"
    sqlstate = "42501"


class StatementTooComplex(UserError):
    code = "statement_too_complex"
    sqlstate = "54001"


class DataException(UserError):
    code = "data_exception"
    sqlstate = "22000"


class CharacterNotInRepertoire(UserError):
    code = "character_not_in_repertoire"
    sqlstate = "22021"


class StringTooLong(UserError):
    code = "string_data_right_truncation"
    sqlstate = "22001"


class DivisionByZero(UserError):
    code = "division_by_zero"
    sqlstate = "22012"
    usual_detail = "Division by zero has no value."


class NumericOutOfRange(UserError):
    code = "numeric_value_out_of_range"
    sqlstate = "22003"
    usual_detail = "Numeric out of range of its type."


class DatetimeOutOfRange(UserError):
    code = "datetime_field_overflow"
    sqlstate = "22008"


class InvalidText(UserError):
    code = "invalid_text_representation"
    sqlstate = "22P02"


class InvalidDatetime(InvalidText):
    code = "invalid_datetime_format"
    sqlstate = "22007"


class InvalidParameter(UserError):
    code = "invalid_parameter_value"
    sqlstate = "22023"


class OutOfDomain(InvalidParameter):
    """A value that the clause or the function does not take; PostgreSQL has an SQLSTATE for each."""

    code = "argument_out_of_domain"

    def __init__(self, message: str, *, sqlstate: str, detail: str | None = None) -> None:
        super().__init__(message, detail=detail)
        self.sqlstate = sqlstate


class NotNullViolation(UserError):
    code = "not_null_violation"
    sqlstate = "23502"


class UniqueViolation(UserError):
    code = "unique_violation"
    sqlstate = "23505"


class DependentObjects(UserError):
    code = "dependent_objects_still_exist"
    sqlstate = "2BP01"


class FeatureNotSupported(UserError):
    code = "feature_not_supported"
    sqlstate = "0A000"


class TransactionTooLarge(FeatureNotSupported):
    code = "transaction_too_large"


class WrongObjectType(UserError):
    code = "wrong_object_type"
    sqlstate = "42809"


class InvalidDefinition(UserError):
    code = "invalid_object_definition"
    sqlstate = "42P17"


class InvalidTable(InvalidDefinition):
    code = "invalid_table_definition"
    sqlstate = "42P16"


class InvalidRecursion(UserError):
    code = "invalid_recursion"
    sqlstate = "42P19"


class RecursionLimit(UserError):
    """A recursive query has gone on for as long as one may."""

    code = "recursion_limit_exceeded"
    sqlstate = "54000"


class GroupingError(UserError):
    code = "grouping_error"
    sqlstate = "42803"


class WindowingError(GroupingError):
    code = "windowing_error"
    sqlstate = "42P20"


class CardinalityViolation(UserError):
    code = "cardinality_violation"
    sqlstate = "21000"


class ObjectNotReady(UserError):
    code = "object_not_in_prerequisite_state"
    sqlstate = "55000"


class QueryCanceled(UserError):
    code = "query_canceled"
    sqlstate = "57014"


class SerializationFailure(UserError):
    """Another transaction changed the same rows first. The whole transaction may be tried again."""

    code = "serialization_failure"
    sqlstate = "40001"
    retryable = True


class TransactionState(UserError):
    """The statement does not fit the transaction it was sent in."""

    code = "invalid_transaction_state"
    sqlstate = "25000"

    def __init__(self, message: str, *, sqlstate: str, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.sqlstate = sqlstate


class UndefinedCursor(UserError):
    code = "invalid_cursor_name"
    sqlstate = "34000"


class CursorBehind(UserError):
    code = "cursor_behind"
    sqlstate = "24000"


class UndefinedStatement(UserError):
    code = "invalid_sql_statement_name"
    sqlstate = "26000"


class IndeterminateType(UserError):
    code = "indeterminate_datatype"
    sqlstate = "42P18"


class BadCopyFormat(UserError):
    code = "bad_copy_file_format"
    sqlstate = "22P04"


class InvalidLogin(UserError):
    code = "invalid_password"
    sqlstate = "28P01"


class InvalidLoginName(InvalidLogin):
    code = "invalid_authorization_specification"
    sqlstate = "28000"


class DuplicateStatement(DuplicateObject):
    code = "duplicate_prepared_statement"
    sqlstate = "42P05"


class DuplicateCursor(DuplicateObject):
    code = "duplicate_cursor"
    sqlstate = "42P03"


class ProtocolViolation(UserError):
    """`fatal` ends the connection: after it nobody knows where the next message begins."""

    code = "protocol_violation"
    sqlstate = "08P01"

    def __init__(
        self, message: str, *, detail: str | None = None, sqlstate: str | None = None, fatal: bool = True
    ) -> None:
        super().__init__(message, detail=detail)
        self.sqlstate = sqlstate or self.sqlstate
        self.fatal = fatal


# --- the surroundings --------------------------------------------------------------------------------


class SurroundingsError(SeicheError):
    code = "surroundings"
    sqlstate = "58000"


class StorageUnavailable(SurroundingsError):
    code = "storage_unavailable"
    sqlstate = "58030"
    retryable = True


class DiskFull(SurroundingsError):
    code = "disk_full"
    sqlstate = "53100"
    retryable = True


class MetadataUnavailable(SurroundingsError):
    code = "metadata_unavailable"
    sqlstate = "08006"
    retryable = True


class CommitOutcomeUnknown(SurroundingsError):
    code = "commit_outcome_unknown"
    sqlstate = "08007"


class FolderNotUsable(SurroundingsError):
    code = "folder_not_usable"
    sqlstate = "58030"


class MetadataVersionError(SurroundingsError):
    code = "metadata_version"
    sqlstate = "55000"


class LeaseHeld(SurroundingsError):
    code = "lease_held"
    sqlstate = "55006"


class LeaseLost(SurroundingsError):
    code = "lease_lost"
    sqlstate = "57P01"


class ConfigError(SurroundingsError):
    code = "config_error"
    sqlstate = "F0000"


class JavaNotUsable(SurroundingsError):
    code = "java_not_usable"
    sqlstate = "58000"


class ServerNotUsable(SurroundingsError):
    code = "server_not_usable"
    sqlstate = "58000"


class TooManyConnections(SurroundingsError):
    code = "too_many_connections"
    sqlstate = "53300"
    retryable = True


class EngineStopped(SurroundingsError):
    code = "engine_stopped"
    sqlstate = "57P01"


# --- an epoch ----------------------------------------------------------------------------------------


class JobFailed(SeicheError):
    """Names the job; `cause` is what it raised, the user's mistake or the surroundings or ourselves."""

    code = "job_failed"
    sqlstate = "58000"

    def __init__(self, job: int, name: str, cause: BaseException) -> None:
        reason = cause.message if isinstance(cause, SeicheError) else _in_one_line(cause)
        detail = "Everything since the last checkpoint was undone; the database keeps its last durable state."
        hint = "Run the statement again."
        if isinstance(cause, SeicheError):
            detail = f"{cause.detail} {detail}" if cause.detail else detail
            hint = cause.hint or hint
            self.code, self.sqlstate = cause.code, cause.sqlstate  # what happened matters more than where
        super().__init__(f'job "{name}" failed: {reason}', detail=detail, hint=hint)
        self.job = job
        self.name = name
        self.cause = cause


def _in_one_line(cause: BaseException) -> str:
    """What a foreign exception says, without the stack that those from Java carry in their text."""
    lines = [line for line in str(cause).splitlines() if line.strip()]
    deepest = [line for line in lines if line.startswith("Caused by: ")]
    return deepest[-1].removeprefix("Caused by: ") if deepest else lines[0] if lines else type(cause).__name__


# --- ourselves ---------------------------------------------------------------------------------------


class InvariantError(SeicheError):
    code = "invariant"
    sqlstate = "XX000"


class InternalError(SeicheError):
    """Something nobody foresaw. Whoever asked is not shown what; the log is."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """A hint naming the known name closest to a mistyped one, or None when nothing is close."""
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f'Perhaps you meant "{matches[0]}".' if matches else None
