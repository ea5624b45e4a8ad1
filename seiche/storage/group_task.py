"""What a task of Spark does with row groups of a base: it reads them by Arrow and keeps the wanted rows.

The function is sent to executors by value, so that these need Arrow and nothing of Seiche. It brings its own imports
along, and what it is given is plain or pickled: an executor without Arrow can then say so.
"""

from __future__ import annotations

from collections.abc import Sequence

# A file's number among those that are asked, its path and its row groups.
Piece = tuple[int, str, Sequence[int]]

# Arrow's file system and the wanted values by column, both pickled; the names of the columns to bring; how many bytes
# of rows may be found; and pieces.
Task = tuple[bytes, bytes, Sequence[str], int, Sequence[Piece]]

# The rows found in each file that has some, as an Arrow stream; None for too many; or why the task could not tell.
Answer = list[tuple[int, bytes]] | None | str


def wanted_rows(task: Task) -> Answer:
    """The rows that have a wanted value in each of the wanted columns."""
    try:
        import pickle

        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        files, values, names, bytes_max, pieces = task
        filesystem, wanted = pickle.loads(files), pickle.loads(values)
        others = [name for name in names if name not in wanted]
        answer = []
        size = 0
        for number, path, groups in pieces:
            found = []
            with filesystem.open_input_file(path) as source:
                file = pq.ParquetFile(source, pre_buffer=False)
                held = set(file.schema_arrow.names)
                for group in groups:
                    rows = file.read_row_group(group, columns=list(wanted), use_threads=False)
                    kept = None
                    for name, listed in wanted.items():
                        here = pc.is_in(rows[name].cast(listed.type), value_set=listed)
                        kept = here if kept is None else pc.and_(kept, here)
                    if not pc.any(kept).as_py():
                        continue
                    further = [name for name in others if name in held]
                    if further:
                        more = file.read_row_group(group, columns=further, use_threads=False)
                        for name in further:
                            rows = rows.append_column(more.schema.field(name), more[name])
                    found.append(rows.filter(kept))
                    size += found[-1].nbytes
                    if size > bytes_max:
                        return None
            if found:
                sink = pa.BufferOutputStream()
                table = pa.concat_tables(found)
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                answer.append((number, sink.getvalue().to_pybytes()))
        return answer
    except Exception as cause:  # noqa: BLE001 - whatever an executor lacks: Spark's own reader is asked instead
        return f"{type(cause).__name__}: {cause}"


__all__ = ["Answer", "Piece", "Task", "wanted_rows"]
