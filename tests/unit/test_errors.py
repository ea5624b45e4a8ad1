from __future__ import annotations

import pytest

from seiche.errors import DivisionByZero, JobFailed

JAVA = (
    "An error occurred while calling o1.getResult.\n: org.apache.spark.SparkException: Exception thrown\n"
    "\tat org.apache.spark.util.ThreadUtils.awaitResult(ThreadUtils.scala:70)\n"
    "Caused by: java.io.IOException: wrapped\n\tat a.b.C(C.java:1)\n"
    "Caused by: java.util.NoSuchElementException: key not found: ship\n\tat a.b.C(C.java:2)\n"
)


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (RuntimeError(JAVA), "java.util.NoSuchElementException: key not found: ship"),
        (RuntimeError("plain words\nand more"), "plain words"),
        (RuntimeError(), "RuntimeError"),
        (DivisionByZero("division by zero"), "division by zero"),
    ],
)
def test_a_failed_job_tells_its_cause_in_one_line_and_no_stack(cause: Exception, told: str) -> None:
    error = JobFailed(7, "busy_berths", cause)
    assert error.message == f'job "busy_berths" failed: {told}'
    assert error.cause is cause
