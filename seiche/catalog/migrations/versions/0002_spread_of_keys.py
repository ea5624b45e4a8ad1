"""Says of each stored relation how its keys are spread over vnodes.

Revision ID: 0002

Until here keys of several columns were spread by all of them. Rows that are stored stay where they are.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    connection = op.get_bind()
    objects = sa.table("seiche_objects", sa.column("id", sa.BigInteger()), sa.column("relation", sa.Text()))
    stored = connection.execute(sa.select(objects).where(objects.c.relation.is_not(None))).all()
    for id_, relation in stored:
        said = json.dumps(json.loads(relation) | {"spread": "by whole key"})
        connection.execute(sa.update(objects).where(objects.c.id == id_).values(relation=said))
