from edp.data.tasks import find  # noqa: F401
