from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seiche.epoch.barrier import Barrier, BarrierKind
from seiche.epoch.graph import Failed, Graph, Outcome, Request, Succeeded, run_graph
from seiche.errors import DiskFull, InvalidText, InvariantError, JobFailed, UndefinedObject
from seiche.model import Epoch, JobId, RelationId
from tests.unit.epoch.harbour import HarbourJob, Rows, table, view

BARRIER = Barrier(Epoch(8), Epoch(7), BarrierKind.CHECKPOINT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def insert(ticket: int, job: int, payload: object) -> Request:
    return Request(ticket, JobId(job), payload)


def names(graph: Graph) -> list[str]:
    return [job.name for job in graph]


def test_producers_come_before_their_consumers_whatever_the_order_of_creation() -> None:
    busy = view(1, "busy_berths", 2)
    load = view(2, "berth_load", 3, 4)
    assert names(Graph([busy, load, table(4, "berths"), table(3, "arrivals")])) == [
        "arrivals",
        "berths",
        "berth_load",
        "busy_berths",
    ]


def test_a_circle_of_jobs_is_refused_by_name() -> None:
    with pytest.raises(InvariantError, match=r"circle.*high_tides"):
        Graph([view(1, "tides", 2), view(2, "high_tides", 1)])


def test_a_job_that_reads_its_own_output_is_refused() -> None:
    with pytest.raises(InvariantError, match="circle"):
        Graph([view(1, "tides", 1)])


def test_two_producers_of_one_relation_are_refused() -> None:
    class Harbourmaster(HarbourJob):
        @property
        def outputs(self) -> frozenset[RelationId]:
            return frozenset({RelationId(1)})

    with pytest.raises(InvariantError, match="two producers"):
        Graph([table(1, "ships"), Harbourmaster(JobId(2), "ships_again")])


def test_two_jobs_of_one_id_are_refused() -> None:
    with pytest.raises(InvariantError, match="two jobs"):
        Graph([table(1, "ships"), table(1, "berths")])


def test_a_changed_graph_leaves_the_old_one_as_it_was() -> None:
    harbour = Graph([table(1, "ships")])
    grown = harbour.with_job(view(2, "tall_ships", 1))
    assert names(harbour) == ["ships"]
    assert names(grown) == ["ships", "tall_ships"]
    assert names(grown.without_job(JobId(2))) == ["ships"]
    assert names(grown.replace(view(2, "long_ships", 1))) == ["ships", "long_ships"]
    assert grown.upstream(JobId(2)) == {JobId(1)}
    assert JobId(2) in grown
    assert JobId(2) not in harbour


def test_a_job_that_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(InvariantError, match="no job 9"):
        Graph().without_job(JobId(9))


def test_changes_reach_views_on_views_in_one_epoch(pool: ThreadPoolExecutor) -> None:
    graph = Graph([table(1, "ships"), view(2, "tall_ships", 1), view(3, "tall_names", 2)])
    result = run_graph(graph, BARRIER, [insert(1, 1, "Albatros"), insert(2, 1, "Bremen")], pool)
    assert result.parts == (
        ("ships", ("Albatros", "Bremen")),
        ("tall_ships", ("Albatros", "Bremen")),
        ("tall_names", ("Albatros", "Bremen")),
    )
    assert result.replies == {1: Succeeded("accepted Albatros"), 2: Succeeded("accepted Bremen")}
    assert [(report.name, report.rows_in, report.rows_out, report.requests) for report in result.reports] == [
        ("ships", 0, 2, 2),
        ("tall_ships", 2, 2, 0),
        ("tall_names", 2, 2, 0),
    ]


def test_a_view_whose_inputs_did_not_change_does_not_run(pool: ThreadPoolExecutor) -> None:
    graph = Graph([table(1, "ships"), view(2, "tall_ships", 1), table(3, "tides"), view(4, "high_tides", 3)])
    result = run_graph(graph, BARRIER, [insert(1, 1, "Albatros")], pool)
    assert [report.name for report in result.reports] == ["ships", "tall_ships"]
    assert set(result.changes) == {1, 2}


def test_a_job_that_wants_to_runs_without_changed_inputs(pool: ThreadPoolExecutor) -> None:
    graph = Graph([table(1, "tides"), view(2, "tide_now", 1, wanting=lambda barrier: barrier.is_checkpoint)])
    assert [report.name for report in run_graph(graph, BARRIER, [], pool).reports] == ["tide_now"]


def test_independent_jobs_overlap_in_time(pool: ThreadPoolExecutor) -> None:
    both_here = threading.Barrier(2, timeout=10)
    graph = Graph(
        [
            table(1, "arrivals"),
            view(2, "by_berth", 1, before=lambda _: both_here.wait() and None),
            view(3, "by_ship", 1, before=lambda _: both_here.wait() and None),
        ]
    )
    assert len(run_graph(graph, BARRIER, [insert(1, 1, "Albatros")], pool).reports) == 3


def test_a_consumer_starts_without_waiting_for_unrelated_jobs(pool: ThreadPoolExecutor) -> None:
    view_ran = threading.Event()

    def wait_for_view(_: Barrier) -> None:
        assert view_ran.wait(10)

    graph = Graph(
        [
            table(1, "arrivals"),
            table(2, "tides", before=wait_for_view),
            view(3, "by_ship", 1, before=lambda _: view_ran.set()),
        ]
    )
    assert len(run_graph(graph, BARRIER, [insert(1, 1, "Albatros"), insert(2, 2, 4.2)], pool).reports) == 3


def test_a_failing_request_fails_alone(pool: ThreadPoolExecutor) -> None:
    graph = Graph([table(1, "ships")])
    result = run_graph(graph, BARRIER, [insert(1, 1, "Albatros"), insert(2, 1, "bad")], pool)
    assert result.replies[1] == Succeeded("accepted Albatros")
    reply = result.replies[2]
    assert isinstance(reply, Failed)
    assert isinstance(reply.error, InvalidText)
    assert result.parts == (("ships", ("Albatros",)),)


def test_a_request_for_a_dropped_job_fails_alone(pool: ThreadPoolExecutor) -> None:
    result = run_graph(Graph([table(1, "ships")]), BARRIER, [insert(1, 9, "x"), insert(2, 1, "Albatros")], pool)
    reply = result.replies[1]
    assert isinstance(reply, Failed)
    assert isinstance(reply.error, UndefinedObject)
    assert result.replies[2] == Succeeded("accepted Albatros")


def test_a_failing_job_is_named_and_nothing_starts_after_it(pool: ThreadPoolExecutor) -> None:
    def full(_: Barrier) -> None:
        raise DiskFull("disk is full", hint="Make room.")

    downstream: list[Barrier] = []
    graph = Graph(
        [table(1, "ships"), view(2, "tall_ships", 1, before=full), view(3, "names", 2, before=downstream.append)]
    )
    with pytest.raises(JobFailed) as caught:
        run_graph(graph, BARRIER, [insert(1, 1, "Albatros")], pool)
    assert (caught.value.job, caught.value.name) == (2, "tall_ships")
    assert isinstance(caught.value.__cause__, DiskFull)
    assert caught.value.hint == "Make room."
    assert downstream == []


def test_a_failure_waits_for_the_jobs_that_still_run(pool: ThreadPoolExecutor) -> None:
    failing, finished = threading.Event(), threading.Event()

    def fail(_: Barrier) -> None:
        failing.set()
        raise DiskFull("disk is full")

    def slow(_: Barrier) -> None:
        assert failing.wait(10)
        threading.Event().wait(0.05)
        finished.set()

    graph = Graph([table(1, "ships", before=fail), table(2, "tides", before=slow)])
    with pytest.raises(JobFailed, match="ships"):
        run_graph(graph, BARRIER, [insert(1, 1, "Albatros"), insert(2, 2, 4.2)], pool)
    assert finished.is_set()


def test_the_other_failures_of_an_epoch_are_noted(pool: ThreadPoolExecutor) -> None:
    both_here = threading.Barrier(2, timeout=10)

    def fail(_: Barrier) -> None:
        both_here.wait()
        raise DiskFull("disk is full")

    graph = Graph([table(1, "ships", before=fail), table(2, "tides", before=fail)])
    with pytest.raises(JobFailed) as caught:
        run_graph(graph, BARRIER, [insert(1, 1, "Albatros"), insert(2, 2, 4.2)], pool)
    (other,) = {"ships", "tides"} - {caught.value.name}
    assert caught.value.__notes__ == [f'In the same epoch: job "{other}" failed: disk is full']


def test_a_job_that_forgets_a_reply_breaks_an_invariant(pool: ThreadPoolExecutor) -> None:
    class Forgetful(HarbourJob):
        def run(self, *_: object) -> Outcome:
            return Outcome()

    with pytest.raises(JobFailed) as caught:
        run_graph(Graph([Forgetful(JobId(1), "ships")]), BARRIER, [insert(1, 1, "Albatros")], pool)
    assert isinstance(caught.value.__cause__, InvariantError)


def test_a_job_that_changes_a_foreign_relation_breaks_an_invariant(pool: ThreadPoolExecutor) -> None:
    class Pirate(HarbourJob):
        def run(self, *_: object) -> Outcome:
            return Outcome({RelationId(7): Rows(("gold",))})

    with pytest.raises(JobFailed) as caught:
        run_graph(Graph([Pirate(JobId(1), "pirates", wanting=lambda _: True)]), BARRIER, [], pool)
    assert isinstance(caught.value.__cause__, InvariantError)


def test_a_job_that_cannot_say_what_it_wants_fails_the_epoch(pool: ThreadPoolExecutor) -> None:
    def unsure(_: Barrier) -> bool:
        raise DiskFull("disk is full")

    with pytest.raises(JobFailed, match="tides"):
        run_graph(Graph([table(1, "tides", wanting=unsure)]), BARRIER, [], pool)
