from __future__ import annotations

from pathlib import Path

import pytest

from seiche import class_archive
from tests.servers import HarbourServer, java_below

pytestmark = pytest.mark.spark


def test_the_java_of_a_server_has_mapped_the_archive_of_its_classes(server: HarbourServer) -> None:
    archive = class_archive.fitting()
    if archive is None or not archive.is_file():
        pytest.skip("NO ARCHIVE OF CLASSES: `seiche prepare` makes one")
    assert str(archive) in Path(f"/proc/{java_below(server.pid)}/maps").read_text()
