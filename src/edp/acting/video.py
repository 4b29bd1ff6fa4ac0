"""A video of one episode."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from edp.envs.make import make_env
from edp.errors import UserError, first_line
from edp.files import check_writable, replacing

FORMATS = (".gif", ".mp4")
PLATFORMS = ("egl", "osmesa", "glfw")
MOST_FPS = 50.0  # players of GIFs show no more


class Filmed(gymnasium.Wrapper):
    """Keeps a frame of every state."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self.frames: list[np.ndarray] = []

    def reset(self, **options: Any):
        given = self.env.reset(**options)
        self.frames = [self.frame()]
        return given

    def step(self, action: Any):
        given = self.env.step(action)
        self.frames.append(self.frame())
        return given

    def frame(self) -> np.ndarray:
        return np.asarray(self.env.render())


def check_video_path(path: Path, overwrite: bool = False) -> None:
    """Refuse a path to which no video can be written, before the episode is played."""
    if path.suffix not in FORMATS:
        raise UserError(f"{path}: a video is {' or '.join(FORMATS)}")
    if path.suffix == ".mp4":
        try:
            import imageio_ffmpeg  # noqa: F401  # pyright: ignore
        except ImportError:
            raise UserError("MP4 needs another package: pip install imageio-ffmpeg (or choose .gif)") from None
    check_writable(path, overwrite)


PROBE = """
import json
import sys
from edp.envs.make import make_env
env = make_env(sys.argv[1], render_mode="rgb_array", **json.loads(sys.argv[2]))
env.reset(seed=0)
env.render()
"""


def render_platform(env_id: str, **options: Any) -> str:
    """The OpenGL platform that can render here: ``$MUJOCO_GL``, or the first that works.

    Each one is tried in a separate process, because one that does not work may end it.
    """
    given = os.environ.get("MUJOCO_GL")
    for name in (given,) if given else PLATFORMS:
        command = [sys.executable, "-c", PROBE, env_id, json.dumps(options)]
        try:
            tried = subprocess.run(command, env=os.environ | {"MUJOCO_GL": name}, capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            continue
        if tried.returncode == 0:
            return name
    raise UserError(
        f"this machine cannot render {env_id} (tried {given or ', '.join(PLATFORMS)}): install EGL or OSMesa "
        "(on Debian: apt install libegl1 libosmesa6)"
    )


def filmed_env(env_id: str, **options: Any) -> Filmed:
    """The environment, with a camera that follows if it has one."""
    os.environ["MUJOCO_GL"] = render_platform(env_id, **options)
    env = make_env(env_id, render_mode="rgb_array", **options)
    renderer, model = (getattr(env.unwrapped, name, None) for name in ("mujoco_renderer", "model"))
    if renderer is not None and model is not None:
        camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")  # pyright: ignore
        renderer.camera_id = camera if camera >= 0 else renderer.camera_id
    return Filmed(env)


def write_video(path: Path, env: Filmed) -> None:
    """Write the frames at the environment's speed."""
    from imageio import v3

    fps = float(env.metadata.get("render_fps") or 30)
    every = int(np.ceil(fps / MOST_FPS)) if path.suffix == ".gif" else 1
    frames = np.stack(env.frames[::every])
    timing = {"duration": 1000 * every / fps, "loop": 0} if path.suffix == ".gif" else {"fps": fps}
    try:
        with warnings.catch_warnings(), replacing(path) as part:
            warnings.simplefilter("ignore", RuntimeWarning)  # JAX warns about forks, and ffmpeg is one
            v3.imwrite(part, frames, **timing)  # pyright: ignore
    except ValueError as error:
        raise UserError(f"{path}: cannot be written ({first_line(error)})") from None
