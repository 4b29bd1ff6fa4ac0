import hashlib

import numpy as np

from edp.data.log import Dataset
from edp.data.log import read as read_dataset  # noqa: F401


def fingerprint(dataset: Dataset) -> str:
    """Tells whether the data is still what it was."""
    found = hashlib.sha256()
    for column in (dataset.obs, dataset.action, dataset.reward, dataset.next_obs, dataset.not_done, dataset.episode):
        found.update(np.ascontiguousarray(column).data)
    return found.hexdigest()
