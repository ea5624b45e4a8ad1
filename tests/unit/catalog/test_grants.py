"""Grants and comments in the catalog and in the metadata database."""

from __future__ import annotations

from pathlib import Path

from seiche.catalog.access import access_list, may, may_grant
from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import Comment, Grant, Privilege, User
from seiche.catalog.store import MetadataStore
from seiche.clock import SimulatedClock
from seiche.model import ObjectId
from tests.unit.catalog.contract import ARRIVALS, BUSY, HOLDER, SHIPS, TTL_MS, harbour

PILOT = User(ObjectId(5), "pilot")
READS = Grant(PILOT.id, SHIPS, Privilege.SELECT)
ADDS = Grant(PILOT.id, SHIPS, Privilege.INSERT, grantable=True)


def with_pilot() -> Catalog:
    return harbour().with_user(PILOT).with_grants(READS, ADDS).with_comment(SHIPS, "imo", "seven digits")


def test_a_grant_opens_what_it_names() -> None:
    catalog = with_pilot()
    ships, arrivals = catalog.get(SHIPS), catalog.get(ARRIVALS)
    assert may(catalog, PILOT, Privilege.SELECT, ships)
    assert not may(catalog, PILOT, Privilege.DELETE, ships)
    assert not may(catalog, PILOT, Privilege.SELECT, arrivals)
    assert may_grant(catalog, PILOT, Privilege.INSERT, ships) and not may_grant(catalog, PILOT, Privilege.SELECT, ships)
    assert access_list(catalog, SHIPS, "root") == ["pilot=a*r/root"]


def test_grants_and_comments_go_with_their_object_and_their_user() -> None:
    catalog = with_pilot()
    gone = catalog.plan_drop([SHIPS], cascade=True)
    assert catalog.without(gone).grants == frozenset() and catalog.without(gone).comments == frozenset()
    assert catalog.without_user("pilot").grants == frozenset()
    assert catalog.without_user("pilot").comments == catalog.comments


def test_an_empty_comment_removes_one() -> None:
    catalog = with_pilot().with_comment(SHIPS, "imo", None)
    assert catalog.comment(SHIPS, "imo") is None and catalog.comments == frozenset()


def test_a_restart_finds_grants_and_comments(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/metadata.db"
    store = MetadataStore.open(address, clock=SimulatedClock())
    store.acquire_lease(HOLDER, TTL_MS)
    store.allocate_ids(1)
    first = with_pilot()
    store.commit(Checkpoint.between(store.load().catalog, first))
    assert store.load().catalog == first
    second = first.without_grants(READS).with_comment(SHIPS, "imo", "an IMO number").with_comment(BUSY, None, "busiest")
    store.commit(Checkpoint.between(first, second))
    assert store.load().catalog == second
    third = second.without(second.plan_drop([SHIPS], cascade=True))
    store.commit(Checkpoint.between(second, third))
    assert store.load().catalog == third
    store.close()


def test_merged_checkpoints_keep_the_last_word() -> None:
    granted, revoked = Checkpoint(put_grants=(READS,)), Checkpoint(drop_grants=frozenset({READS.key}))
    assert granted.merge(revoked).put_grants == ()
    assert revoked.merge(granted).put_grants == (READS,)
    said = Checkpoint(put_comments=(Comment(SHIPS, None, "one"),))
    assert said.merge(Checkpoint(put_comments=(Comment(SHIPS, None, "two"),))).put_comments[0].text == "two"
