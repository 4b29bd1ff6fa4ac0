import jax.numpy as jnp
import numpy as np

from edp.acting.nearest import nearest_distance


def test_nearest_is_the_nearest(rng):
    points, among = rng.standard_normal((1203, 3)), rng.standard_normal((700, 3))
    apart = np.linalg.norm(points[:, None] - among[None], axis=-1).min(axis=1)
    found = nearest_distance(jnp.asarray(points, jnp.float32), jnp.asarray(among, jnp.float32))
    np.testing.assert_allclose(found, apart, atol=1e-3)
