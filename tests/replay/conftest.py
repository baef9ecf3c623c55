import pytest


@pytest.fixture(scope="module")
def cluster(ray_two_cpus):
    """The session's Ray cluster, under the name these tests know it by."""
