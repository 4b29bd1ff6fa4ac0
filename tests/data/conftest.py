import pytest


@pytest.fixture
def url(server):
    """The address of a file on the module's server."""
    return f"http://127.0.0.1:{server.server_port}/set.hdf5"
