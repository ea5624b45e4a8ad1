"""Creation that takes its time: a view is waited for, its progress told, and what failed leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable

from seiche.catalog.objects import ObjectKind, ObjectStatus
from seiche.errors import QueryCanceled, SeicheError, UndefinedObject
from seiche.model import ObjectId
from seiche.session import show
from seiche.session.create_index import IndexDefinitions
from seiche.session.database import Database
from seiche.session.definitions import Definitions
from seiche.session.drops import Drops
from seiche.session.result import Result
from seiche.session.variables import Variables
from seiche.session.views import ViewDefinitions
from seiche.session.work import Work
from seiche.sql import statements as ast
from seiche.stream.backfill.protocol import Backfill
from seiche.types import VARCHAR

NOTICE_SECONDS = 1.0
AGAIN_SECONDS = 0.05  # between two looks for a creation that was stopped and goes on


class Creation:
    """Creates and waits for one session. `tell` reaches the client while the statement runs."""

    def __init__(
        self,
        database: Database,
        variables: Variables,
        definitions: Callable[[], Definitions],
        work: Work,
        tell: Callable[[str], None],
    ) -> None:
        self._database = database
        self._variables = variables
        self._definitions = definitions
        self._work = work
        self._tell = tell

    def create_following(self, statement: ast.CreateFollowing, text: str) -> str | None:
        """Creates the view or sink and, unless it is created in the background, waits for it. Returns a notice."""
        definitions = self._definitions()
        backfill, notice = ViewDefinitions(definitions).create_following(statement, text)
        if backfill is None:
            self._await_other(definitions, statement.name)
        return self._built(backfill, notice)

    def _await_other(self, definitions: Definitions, name: ast.ObjectName) -> None:
        """Waits for a view of that name that somebody else creates: IF NOT EXISTS promises that it is there."""
        view, schema = definitions.place(name)
        there = definitions.catalog.try_find((schema, view))
        backfill = self._database.jobs.get(there.id) if there is not None else None
        if backfill is not None and not self._variables.is_on("background_ddl"):
            self._wait_for(backfill)

    def create_index(self, statement: ast.CreateIndex) -> str | None:
        """As `create_following`, for an index."""
        return self._built(*IndexDefinitions(self._definitions()).create_index(statement))

    def _built(self, backfill: Backfill | None, notice: str | None) -> str | None:
        if backfill is None or self._variables.is_on("background_ddl"):
            return notice
        try:
            self._work.stop_if_told()  # while its epoch ran
            self._wait_for(backfill)
            self._work.wait(self._database.delivered())
        except SeicheError:
            self._abandon(backfill)
            raise
        return notice

    def _wait_for(self, backfill: Backfill) -> None:
        """Waits for a view, and tells how far it is every now and then."""
        told, due = "", time.monotonic() + NOTICE_SECONDS

        def tell() -> None:
            nonlocal told, due
            if time.monotonic() < due:
                return
            due = time.monotonic() + NOTICE_SECONDS
            progress = self._database.jobs.progress(backfill.job.id)
            if progress is not None and progress != told:
                told = progress
                self._tell(f'creation of "{backfill.job.name}": {progress}')

        while True:
            try:
                self._work.wait_telling(backfill.done, tell)
                return
            except QueryCanceled:
                self._work.stop_if_told()
                again = self._begun_again(backfill)
                if again is None:
                    raise
                backfill = again

    def _begun_again(self, backfill: Backfill) -> Backfill | None:
        """The creation that goes on where one was stopped, as RECOVER does it; None when the view is gone."""
        while self._database.recovering:
            self._work.stop_if_told()
            time.sleep(AGAIN_SECONDS)
        listed = self._database.jobs.get(backfill.job.id)
        return listed if listed is not backfill else None

    def wait(self, statement: ast.Wait) -> None:
        if statement.name is None:
            for backfill in self._database.jobs.listed():
                self._wait_for_if_kept(backfill)
            self._work.wait(self._database.delivered())  # the first rows of a sink, if a kill came before them
            return
        view = self._database.catalog.seen_from(self._variables.database).find(
            statement.name.parts,
            search_path=self._variables.search_path,
            kinds=(ObjectKind.MATERIALIZED_VIEW,),
        )
        found = self._database.jobs.get(view.id)
        if found is not None:
            self._wait_for(found)

    def _wait_for_if_kept(self, backfill: Backfill) -> None:
        """As `_wait_for`, and content with a view that somebody cancels: there is nothing left to wait for."""
        try:
            self._wait_for(backfill)
        except QueryCanceled:
            self._work.stop_if_told()

    def _abandon(self, backfill: Backfill) -> None:
        """A view that could not be created leaves nothing behind."""
        self._work.forget_cancel()
        view = self._database.catalog.by_id.get(backfill.job.id)  # type: ignore[call-overload]
        if view is not None and view.status is ObjectStatus.CREATING:
            Drops(self._definitions()).drop_objects([view.id], cascade=True)

    def cancel(self, statement: ast.CancelJobs) -> Result:
        """All of them, or none where one does not exist."""
        jobs = dict.fromkeys(map(ObjectId, statement.ids))
        for number in jobs:
            item = self._database.catalog.by_id.get(number)
            if item is None or item.status is not ObjectStatus.CREATING:
                raise UndefinedObject(f"job {number} does not exist", hint="SHOW JOBS lists the jobs.")
        Drops(self._definitions()).drop_objects(list(jobs), cascade=True)
        return show.rows("CANCEL_COMMAND", [("Id", VARCHAR)], [(str(number),) for number in statement.ids])
