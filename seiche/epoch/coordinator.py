"""The loop that moves time: take what waits, inject a barrier, run the jobs, commit, publish, acknowledge.

    submit ─┐
    command ┼─▶ waiting ─▶ begin ─▶ commands ─▶ jobs ─▶ commit ─▶ publish ─▶ acknowledge ─▶ report
    flush ──┘                 └────────── an error: discard, tell everyone who waits ─┘

Promises:

* A future is resolved with a value only after the checkpoint that holds its effect is durable; a caller that
  got an error instead finds nothing of its call in the database. Only CommitOutcomeUnknown, given when the loop
  breaks in the middle of a commit, leaves it open.
* All since the last checkpoint becomes durable in one commit or is forgotten as a whole, graph included.
* An idle database does nothing: no epoch, no commit.
* No caller is left hanging: if the loop itself breaks, every future gets an error and every later call raises.

`step` makes one decision and never waits for time to pass; `run_forever` adds the waiting. All state but the
queues belongs to whoever calls `step`: the thread of `start`, or a simulation.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar, assert_never

from seiche.clock import Clock, SystemClock
from seiche.epoch.barrier import Barrier, BarrierKind
from seiche.epoch.checkpoint import CheckpointStore, Command
from seiche.epoch.graph import Failed, Graph, JobReport, Request, Succeeded, run_graph
from seiche.epoch.report import CoordinatorState, EpochReport, Health
from seiche.errors import (
    CommitOutcomeUnknown,
    EngineStopped,
    InvalidParameter,
    InvariantError,
    MetadataUnavailable,
    SeicheError,
)
from seiche.model import EPOCH_ZERO, Epoch, JobId, next_epoch

log = logging.getLogger(__name__)

FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 10.0

# Whoever waited for a long epoch is about to call again: the next one gathers for a moment, a share of what the last
# one took. Without it the first caller has an epoch for itself, and all others wait for that one to end.
GATHER_SHARE = 0.02
GATHER_S_MAX = 0.05
GATHER_AFTER_S = 0.25


@dataclass(frozen=True, slots=True)
class Ran:
    """An epoch ran, well or not. Step again at once."""

    report: EpochReport


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do until a call arrives or, if given, so many seconds have passed."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """The coordinator has stopped or failed."""


Step: TypeAlias = Ran | Idle | Ended
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class _Call(Generic[W]):
    """A caller and what it waits for."""

    ticket: int
    future: Future[Any]
    what: W


@dataclass(slots=True)
class _Work:
    """What one epoch takes from the queues."""

    commands: list[_Call[Command]] = field(default_factory=list)
    requests: list[_Call[Request]] = field(default_factory=list)
    flushes: list[_Call[None]] = field(default_factory=list)

    def futures(self) -> dict[int, Future[Any]]:
        """By ticket."""
        return {
            **{call.ticket: call.future for call in self.commands},
            **{call.ticket: call.future for call in self.requests},
            **{call.ticket: call.future for call in self.flushes},
        }


@dataclass(slots=True)
class _Uncommitted:
    """All that happened since the last checkpoint: made durable together or forgotten together."""

    graph: Graph
    barriers: int = 0
    parts: list[object] = field(default_factory=list)
    open: dict[int, Future[Any]] = field(default_factory=dict)  # by ticket: callers without an answer yet
    answers: dict[int, object] = field(default_factory=dict)
    publish: list[Callable[[], None]] = field(default_factory=list)
    ingested: bool = False


@dataclass(slots=True)
class _Progress:
    """The measurements of the epoch under way."""

    barrier: Barrier
    started: float
    requests: int
    commands: int
    jobs: tuple[JobReport, ...] = ()
    ran: float | None = None
    committed: float | None = None

    def report(self, now: float, error: Exception | None = None) -> EpochReport:
        ran = now if self.ran is None else self.ran
        committed = now if self.committed is None else self.committed
        return EpochReport(
            barrier=self.barrier,
            run_s=ran - self.started,
            commit_s=committed - ran if self.barrier.is_checkpoint else 0.0,
            total_s=now - self.started,
            requests=self.requests,
            commands=self.commands,
            jobs=self.jobs,
            error=error,
        )


@dataclass(slots=True)
class _Doubt:
    """A commit of unknown outcome."""

    progress: _Progress
    error: Exception
    backoff_s: float = FIRST_BACKOFF_S


class Coordinator:
    """One per graph. Every method but `step` and `run_forever` may be called from any thread.

    Futures can be cancelled until an epoch takes their call. Callbacks on them, on_publish and listeners run on
    the loop's thread: they may call the coordinator but must not wait for it.
    """

    def __init__(
        self,
        store: CheckpointStore,
        *,
        clock: Clock | None = None,
        barrier_interval_ms: int = 1000,
        checkpoint_frequency: int = 1,
        executor: Executor | None = None,
        parallelism: int = 4,
        name: str = "main",
    ) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._name = name
        self._own_executor = executor is None
        self._executor = executor or ThreadPoolExecutor(parallelism, thread_name_prefix=f"seiche-{name}-job")
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._wake = threading.Event()

        # Shared with callers, under the lock.
        self._lock = threading.Lock()
        self._tickets = count(1)
        self._state = CoordinatorState.NEW
        self._waiting = _Work()
        self._paused = False
        self._stop_with_checkpoint: bool | None = None
        self._listeners: list[Callable[[EpochReport], None]] = []
        self._interval_s = 0.0
        self._frequency = 1
        self.set_barrier_interval_ms(barrier_interval_ms)
        self.set_checkpoint_frequency(checkpoint_frequency)

        # The loop's own.
        self._graph = Graph()
        self._committed = EPOCH_ZERO
        self._previous = EPOCH_ZERO  # the last barrier that succeeded, durable or not
        self._issued = EPOCH_ZERO  # the last epoch number used, failed attempts included
        self._initialised = False
        self._uncommitted = _Uncommitted(self._graph)
        self._doubt: _Doubt | None = None
        self._undiscarded = False
        self._in_commit = False
        self._ticked: float | None = None
        self._gather_until = 0.0
        self._failures = 0
        self._not_before = 0.0
        self._last_error: BaseException | None = None

    # Life

    def open(self, graph: Graph, committed_epoch: Epoch) -> None:
        """Accept calls, without a thread: the caller drives `step`."""
        with self._lock:
            if self._state is not CoordinatorState.NEW:
                raise InvariantError(f"coordinator {self._name!r} was started before; it is {self._state.value}")
            self._state = CoordinatorState.RUNNING
        self._graph = graph
        self._uncommitted = _Uncommitted(graph)
        self._committed = self._previous = self._issued = committed_epoch

    def start(self, graph: Graph, committed_epoch: Epoch) -> None:
        """Begin with the jobs and the epoch that recovery found. Nothing runs before there is something to do."""
        self.open(graph, committed_epoch)
        self._thread = threading.Thread(target=self.run_forever, name=f"seiche-{self._name}", daemon=True)
        self._thread.start()

    def begin_stop(self, checkpoint: bool = True) -> None:
        """Refuse new calls and let the loop end. With a checkpoint, what waits is run and made durable first;
        without, or while paused, callers that wait get EngineStopped."""
        with self._lock:
            if self._stop_with_checkpoint is None:
                self._stop_with_checkpoint = checkpoint
            else:
                self._stop_with_checkpoint = self._stop_with_checkpoint and checkpoint
            if self._state is CoordinatorState.NEW:
                self._state = CoordinatorState.STOPPED
                self._ended.set()
        self._wake.set()

    def stop(self, checkpoint: bool = True, timeout: float | None = None) -> bool:
        """`begin_stop`, then wait for the end of the loop. False if it has not ended in time; it still will."""
        self.begin_stop(checkpoint)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return self._ended.is_set()

    # Calls

    def submit(self, job: JobId, payload: object) -> Future[Any]:
        """Run a statement in the next epoch. Resolved with its reply once durable, or with its own error at once."""
        return self._enqueue(self._waiting.requests, lambda ticket: Request(ticket, job, payload))

    def submit_all(self, requests: Sequence[tuple[JobId, object]]) -> list[Future[Any]]:
        """As `submit` for several statements, all in the same epoch: durable together or not at all."""

        def made(job: JobId, payload: object) -> Callable[[int], Request]:
            return lambda ticket: Request(ticket, job, payload)

        return self._enqueue_all(self._waiting.requests, [made(job, payload) for job, payload in requests])

    def command(self, command: Command) -> Future[Any]:
        """Resolved with the effect's value once the effect is durable and published. Runs while paused too."""
        return self._enqueue(self._waiting.commands, lambda ticket: command)

    def flush(self) -> Future[Epoch]:
        """Resolved with a durable epoch that holds every call made before. Runs nothing if nothing waits.

        While paused, requests that wait are not among what it covers.
        """
        return self._enqueue(self._waiting.flushes, lambda ticket: None)

    def pause(self) -> None:
        """Let no further barrier run jobs; the one under way finishes. Commands and checkpoints go on."""
        with self._lock:
            self._paused = True
        self._wake.set()

    def resume(self) -> None:
        with self._lock:
            self._paused = False
        self._wake.set()

    def set_barrier_interval_ms(self, milliseconds: int) -> None:
        with self._lock:
            self._interval_s = _at_least_one("barrier_interval_ms", milliseconds) / 1000
        self._wake.set()

    def set_checkpoint_frequency(self, barriers: int) -> None:
        """Make every so many-th barrier a checkpoint."""
        with self._lock:
            self._frequency = _at_least_one("checkpoint_frequency", barriers)
        self._wake.set()

    def add_listener(self, listener: Callable[[EpochReport], None]) -> None:
        with self._lock:
            self._listeners = [*self._listeners, listener]

    def remove_listener(self, listener: Callable[[EpochReport], None]) -> None:
        with self._lock:
            self._listeners = [other for other in self._listeners if other != listener]

    @property
    def committed_epoch(self) -> Epoch:
        return self._committed

    @property
    def graph(self) -> Graph:
        """The jobs as of the last checkpoint."""
        return self._graph

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def last_error(self) -> BaseException | None:
        """The latest failure of an epoch or of the loop, kept after epochs succeed again."""
        return self._last_error

    def health(self) -> Health:
        with self._lock:
            return Health(
                state=self._state,
                paused=self._paused,
                committed_epoch=self._committed,
                waiting=len(self._waiting.futures()),
                failures_in_a_row=self._failures,
                last_error=self._last_error,
            )

    def _enqueue(self, queue: list[_Call[W]], what: Callable[[int], W]) -> Future[Any]:
        (future,) = self._enqueue_all(queue, [what])
        return future

    def _enqueue_all(self, queue: list[_Call[W]], whats: Sequence[Callable[[int], W]]) -> list[Future[Any]]:
        futures: list[Future[Any]] = [Future() for _ in whats]
        with self._lock:
            match self._state:
                case CoordinatorState.NEW:
                    raise InvariantError(f"coordinator {self._name!r} was not started")
                case CoordinatorState.STOPPED:
                    raise _stopped()
                case CoordinatorState.FAILED:
                    raise _broken(self._last_error) from self._last_error
                case CoordinatorState.RUNNING | CoordinatorState.IN_DOUBT:
                    if self._stop_with_checkpoint is not None:
                        raise _stopped()
                case _:
                    assert_never(self._state)
            for future, what in zip(futures, whats, strict=True):
                ticket = next(self._tickets)
                queue.append(_Call(ticket, future, what(ticket)))
        self._wake.set()
        return futures

    # The loop

    def run_forever(self) -> None:
        """Step until stopped or failed."""
        while True:
            # Cleared before the step looks, so that a call made after the look is never slept through.
            self._wake.clear()
            try:
                step = self.step()
            except BaseException:  # noqa: BLE001 - the step has told every caller and logged it
                return
            match step:
                case Ran():
                    pass
                case Idle(seconds):
                    self._wake.wait(seconds)
                case Ended():
                    return
                case _:
                    assert_never(step)

    def step(self) -> Step:
        """Make one decision: run an epoch, settle a doubt, end, or say how long there is nothing to do.

        Whatever it raises has broken the coordinator for good: state FAILED, all callers told.
        """
        try:
            return self._step()
        except BaseException as error:
            self._break(error)
            raise

    def _step(self) -> Step:
        if self._ended.is_set():
            return Ended()
        if self._doubt is not None:
            return self._settle_doubt(self._doubt)
        with self._lock:
            stop_with_checkpoint = self._stop_with_checkpoint
            paused = self._paused
            gathers = self._gathers_s() if stop_with_checkpoint is None and not paused else 0.0
            if gathers > 0:
                return Idle(gathers)
            work = self._take(paused) if stop_with_checkpoint is not False else _Work()
        stopping = stop_with_checkpoint is not None
        barrier = self._next_barrier(forced=stopping or bool(work.commands or work.flushes))

        if work.commands or work.requests:
            return self._run_epoch(barrier, work, paused)
        if stopping:
            if stop_with_checkpoint and self._uncommitted.barriers:
                return self._run_epoch(barrier, work, paused)
            self._answer_flushes(work)
            return self._end()

        now = self._clock.monotonic()
        staged = self._uncommitted.barriers > 0
        if not work.flushes:
            if not staged and (paused or not len(self._graph)):
                return Idle(None)
            due = now if self._ticked is None else max(self._ticked + self._interval_s, self._not_before)
            if now < due:
                return Idle(due - now)
            self._ticked = now
        try:
            self._clear_staging()  # jobs must not take for true what a failed epoch left behind
            busy = staged or (not paused and self._graph.anyone_wants(barrier))
        except Exception as error:  # noqa: BLE001 - the edge of the loop, which goes on
            return self._undo(self._open_epoch(barrier, work), error)
        if busy:
            return self._run_epoch(barrier, work, paused)
        self._answer_flushes(work)
        return Idle(0.0 if work.flushes else self._interval_s)

    def _gathers_s(self) -> float:
        """Under the lock: how long requests still wait for others to come. Commands and flushes wait for nobody."""
        waiting = self._waiting
        if not waiting.requests or waiting.commands or waiting.flushes:
            return 0.0
        return self._gather_until - self._clock.monotonic()

    def _take(self, paused: bool) -> _Work:
        """Under the lock: take from the queues what may run now and was not cancelled. From here on the callers
        are among those who hear of a failure."""
        waiting = self._waiting
        work = _Work(
            commands=_claim(waiting.commands),
            requests=[] if paused else _claim(waiting.requests),
            flushes=_claim(waiting.flushes),
        )
        self._uncommitted.open.update(work.futures())
        return work

    def _next_barrier(self, forced: bool) -> Barrier:
        if not self._initialised:
            kind = BarrierKind.INITIAL
        elif forced or self._uncommitted.barriers + 1 >= self._frequency:
            kind = BarrierKind.CHECKPOINT
        else:
            kind = BarrierKind.BARRIER
        return Barrier(next_epoch(self._issued, self._clock.now_ms()), self._previous, kind)

    def _open_epoch(self, barrier: Barrier, work: _Work) -> _Progress:
        self._issued = barrier.epoch
        self._ticked = self._clock.monotonic()
        return _Progress(barrier, self._ticked, requests=len(work.requests), commands=len(work.commands))

    def _run_epoch(self, barrier: Barrier, work: _Work, paused: bool) -> Step:
        progress = self._open_epoch(barrier, work)
        uncommitted = self._uncommitted
        try:
            self._clear_staging()
            self._store.begin(barrier)
            self._apply_commands(work.commands, barrier)
            if not paused:
                self._run_jobs(work.requests, progress)
                uncommitted.ingested = True
        except Exception as error:  # noqa: BLE001 - the edge of the loop, which goes on
            return self._undo(progress, error)
        progress.ran = self._clock.monotonic()
        uncommitted.answers.update((call.ticket, barrier.epoch) for call in work.flushes)
        uncommitted.barriers += 1
        self._previous = barrier.epoch
        if barrier.is_checkpoint:
            return self._commit(progress)
        return self._report(progress.report(self._clock.monotonic()))

    def _apply_commands(self, calls: Sequence[_Call[Command]], barrier: Barrier) -> None:
        uncommitted = self._uncommitted
        for call in calls:
            try:
                effect = call.what.apply(uncommitted.graph, barrier)
            except InvariantError:
                raise
            except Exception as error:  # noqa: BLE001 - a refused command fails alone, whatever its reason
                uncommitted.open.pop(call.ticket).set_exception(error)
                continue
            uncommitted.graph = effect.graph
            uncommitted.answers[call.ticket] = effect.value
            if effect.part is not None:
                uncommitted.parts.append(effect.part)
            if effect.on_publish is not None:
                uncommitted.publish.append(effect.on_publish)

    def _run_jobs(self, calls: Sequence[_Call[Request]], progress: _Progress) -> None:
        uncommitted = self._uncommitted
        requests = [call.what for call in calls]
        result = run_graph(uncommitted.graph, progress.barrier, requests, self._executor, self._clock)
        progress.jobs = result.reports
        uncommitted.parts.extend(result.parts)
        for ticket, reply in sorted(result.replies.items()):
            match reply:
                case Succeeded(value):
                    uncommitted.answers[ticket] = value
                case Failed(error):  # nothing of it will be durable, so there is nothing to wait for
                    uncommitted.open.pop(ticket).set_exception(error)
                case _:
                    assert_never(reply)

    def _commit(self, progress: _Progress) -> Step:
        self._in_commit = True
        try:
            self._store.commit(progress.barrier, tuple(self._uncommitted.parts))
        except CommitOutcomeUnknown as error:
            return self._enter_doubt(progress, error)
        except SeicheError as error:
            self._in_commit = False
            return self._undo(progress, error)
        except Exception as error:  # noqa: BLE001 - no one may guess what became durable
            return self._enter_doubt(progress, error)
        return self._publish(progress)

    def _enter_doubt(self, progress: _Progress, error: Exception) -> Step:
        log.warning("the outcome of the checkpoint of epoch %d is unknown: %s", progress.barrier.epoch, error)
        self._doubt = _Doubt(progress, error)
        self._last_error = error
        self._set_state(CoordinatorState.IN_DOUBT)
        return self._settle_doubt(self._doubt)

    def _settle_doubt(self, doubt: _Doubt) -> Step:
        try:
            durable = self._store.committed_epoch()
        except InvariantError:
            raise
        except Exception as error:  # noqa: BLE001 - storage is away; the truth is worth waiting for
            log.warning("storage does not say whether epoch %d is durable: %s", doubt.progress.barrier.epoch, error)
            pause_s, doubt.backoff_s = doubt.backoff_s, min(doubt.backoff_s * 2, LONGEST_BACKOFF_S)
            return Idle(pause_s)
        if durable not in (self._committed, doubt.progress.barrier.epoch):
            raise InvariantError(
                f"storage is at epoch {durable}, which this coordinator did not write",
                detail=f"It expected {self._committed} or {doubt.progress.barrier.epoch}.",
                hint="Make sure that only one process uses the database.",
            )
        self._doubt = None
        self._set_state(CoordinatorState.RUNNING)
        if durable == doubt.progress.barrier.epoch:
            return self._publish(doubt.progress)
        self._in_commit = False
        known = MetadataUnavailable(
            "the checkpoint could not be made durable",
            detail=str(doubt.error) or type(doubt.error).__name__,
            hint="Nothing of the statement remains; run it again.",
        )
        known.__cause__ = doubt.error
        return self._undo(doubt.progress, known)

    def _publish(self, progress: _Progress) -> Step:
        """The epoch is durable: move on to it, in memory and for the callers."""
        progress.committed = self._clock.monotonic()
        took = progress.committed - progress.started
        if took >= GATHER_AFTER_S:
            self._gather_until = progress.committed + min(took * GATHER_SHARE, GATHER_S_MAX)
        uncommitted = self._uncommitted
        self._graph = uncommitted.graph
        self._committed = self._previous = progress.barrier.epoch
        self._initialised = self._initialised or uncommitted.ingested
        self._failures, self._not_before = 0, 0.0
        for publish in uncommitted.publish:
            publish()
        for ticket in sorted(uncommitted.open):
            uncommitted.open[ticket].set_result(uncommitted.answers[ticket])
        self._uncommitted = _Uncommitted(self._graph)
        self._in_commit = False
        return self._report(progress.report(self._clock.monotonic()))

    def _undo(self, progress: _Progress, error: Exception) -> Step:
        """Return to the last checkpoint and tell everyone who has waited since then."""
        self._last_error = error
        self._failures += 1
        # Holds back only what the loop starts by itself; someone who waits does not wait for that.
        backoff_s = min(FIRST_BACKOFF_S * 2 ** min(self._failures - 1, 16), LONGEST_BACKOFF_S)
        self._not_before = self._clock.monotonic() + backoff_s
        log.warning("epoch %d failed and is undone: %s", progress.barrier.epoch, error)
        self._discard()
        self._previous = self._committed
        for ticket in sorted(self._uncommitted.open):
            self._uncommitted.open[ticket].set_exception(error)
        self._uncommitted = _Uncommitted(self._graph)
        return self._report(progress.report(self._clock.monotonic(), error))

    def _discard(self) -> None:
        self._undiscarded = True
        try:
            self._clear_staging()
        except InvariantError:
            raise
        except Exception as error:  # noqa: BLE001 - storage is away; no epoch begins before it is cleared
            log.warning("what was staged since epoch %d cannot be discarded yet: %s", self._committed, error)

    def _clear_staging(self) -> None:
        if self._undiscarded:
            self._store.discard()
            self._undiscarded = False

    def _report(self, report: EpochReport) -> Step:
        for listener in self._listeners:
            try:
                listener(report)
            except Exception:  # an onlooker must not stop the database
                log.exception("a listener failed on the report of epoch %d", report.barrier.epoch)
        return Ran(report)

    def _answer_flushes(self, work: _Work) -> None:
        for call in work.flushes:
            self._uncommitted.open.pop(call.ticket).set_result(self._committed)

    # The end

    def _end(self) -> Step:
        if self._uncommitted.barriers:
            self._discard()  # if storage is away, the sweep of the next start does it
        self._close(CoordinatorState.STOPPED, _stopped(), _stopped())
        return Ended()

    def _break(self, error: BaseException) -> None:
        log.critical("coordinator %r broke down; a restart recovers the last checkpoint", self._name, exc_info=error)
        self._last_error = error
        if self._in_commit:
            taken: SeicheError = CommitOutcomeUnknown(
                "the engine broke down while the statement became durable",
                detail=str(error) or type(error).__name__,
                hint="Start the engine again and look whether the statement took effect.",
            )
        else:
            taken = _broken(error)
        taken.__cause__ = error
        waiting = _broken(error)
        waiting.__cause__ = error
        self._close(CoordinatorState.FAILED, taken, waiting)

    def _close(self, state: CoordinatorState, taken: Exception, waiting: Exception) -> None:
        with self._lock:
            self._state = state
            queued, self._waiting = self._waiting.futures(), _Work()
        for future in self._uncommitted.open.values():
            if not future.done():
                _refuse(future, taken)
        for future in queued.values():
            if future.set_running_or_notify_cancel():
                _refuse(future, waiting)
        if self._own_executor:
            self._executor.shutdown(wait=False)
        self._ended.set()

    def _set_state(self, state: CoordinatorState) -> None:
        with self._lock:
            self._state = state


def _claim(queue: list[_Call[W]]) -> list[_Call[W]]:
    """Empty the queue; from here on a call can no longer be cancelled."""
    calls, queue[:] = list(queue), []
    return [call for call in calls if call.future.set_running_or_notify_cancel()]


def _refuse(future: Future[Any], error: Exception) -> None:
    try:
        future.set_exception(error)
    except BaseException:  # a caller's callback; the other callers must hear of it all the same
        log.exception("a callback failed while the coordinator closed")


def _at_least_one(setting: str, value: int) -> int:
    if value < 1:
        raise InvalidParameter(
            f'setting "{setting}" must be at least 1, not {value}', hint=f"ALTER SYSTEM SET {setting} = 1;"
        )
    return value


def _stopped() -> EngineStopped:
    return EngineStopped(
        "the engine is stopped",
        detail="Nothing of the statement remains in the database.",
        hint="Start the engine and run the statement again.",
    )


def _broken(cause: BaseException | None) -> EngineStopped:
    return EngineStopped(
        "the engine broke down",
        detail=f"The coordinator met {type(cause).__name__}: {cause}. Nothing of the statement remains.",
        hint="Start the engine again: it recovers the last checkpoint.",
    )
