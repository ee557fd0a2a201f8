"""Fixtures of the component tests: a running execd."""

import os
import pathlib
import resource
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from execd_process import BINARY, Execd, SanitizerReports  # noqa: E402


def pytest_sessionstart(session):
    if not os.access(BINARY, os.X_OK):
        pytest.exit(f"there is no execd at {BINARY}: run 'make build', or set EXECD", returncode=2)
    os.umask(0o022)  # modes are compared
    # Some tests hold thousands of connections.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))


@pytest.fixture(scope="session")
def sanitizer_reports():
    reports = SanitizerReports()
    yield reports
    reports.check()
    reports.remove()


@pytest.fixture(autouse=True)
def no_report_of_a_sanitizer(sanitizer_reports):
    yield
    sanitizer_reports.check()


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    """One execd for all tests of a module."""
    daemon = Execd()
    yield daemon
    daemon.stop()


@pytest.fixture
def make_execd():
    """Starts execds with options of the test's own; all end with the test."""
    started = []

    def make(*args, **options):
        daemon = Execd(*args, **options)
        started.append(daemon)
        return daemon

    yield make
    for daemon in started:
        daemon.stop()
