"""Small data sets in the layout that lerobot 0.4.4 writes, according to its source. Statistics are left out."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = {"dtype": "video", "shape": [3, 8, 8], "names": ["channels", "height", "width"]}
JOINTS = ["shoulder.pos", "elbow.pos", "gripper.pos"]
COUNTED = ("timestamp", "frame_index", "episode_index", "index", "task_index")


def feature(dtype, *shape, names=None):
    return {"dtype": dtype, "shape": list(shape), "names": names}


def robot_frames(lengths=(5, 4, 6), seed=0):
    """Frames of a small robot: its state, its action, a reward, and whether the episode ended or succeeded."""
    rng, count = np.random.default_rng(seed), sum(lengths)
    last = np.zeros(count, bool)
    last[np.cumsum(lengths) - 1] = True
    return {
        "observation.state": rng.standard_normal((count, 3)).astype(np.float32),
        "action": rng.uniform(-1, 1, (count, 3)).astype(np.float32),
        "next.reward": rng.standard_normal(count).astype(np.float32),
        "next.done": last,
        "next.success": last & (np.arange(count) > lengths[0]),
    }


def write_lerobot(folder, frames=None, lengths=(5, 4, 6), per_file=2, features=None, **info):
    """Write frames as LeRobot does, some episodes in each file. ``info`` replaces entries of the metadata."""
    frames = robot_frames(lengths) if frames is None else frames
    features = (features or {}) | {
        key: about(key, column) for key, column in frames.items() if key not in (features or {})
    }
    episode = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.concatenate([np.arange(length) for length in lengths])
    frames = frames | {"timestamp": (frame / 10).astype(np.float32), "frame_index": frame, "episode_index": episode}
    frames |= {"index": np.arange(len(frame)), "task_index": np.zeros(len(frame), int)}
    features |= {key: feature("float32" if key == "timestamp" else "int64", 1) for key in COUNTED}
    for number, first in enumerate(range(0, len(lengths), per_file)):
        chosen = (episode >= first) & (episode < first + per_file)
        path = folder / DATA_PATH.format(chunk_index=0, file_index=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({key: arrow_column(column[chosen]) for key, column in frames.items()}), path)
    write_meta(folder, lengths, per_file, describe(lengths, features) | info)
    return folder


def about(key, column):
    names = JOINTS if column.ndim == 2 and column.shape[1] == 3 else None
    return feature(str(column.dtype), *(column.shape[1:] or (1,)), names=names)


def arrow_column(column):
    if column.ndim == 2 and column.shape[1] > 1:
        return pa.FixedSizeListArray.from_arrays(np.ascontiguousarray(column).ravel(), column.shape[1])
    return pa.array(column.ravel())


def describe(lengths, features):
    return {
        "codebase_version": "v3.0",
        "robot_type": "so101",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": 10,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": DATA_PATH,
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }


def write_meta(folder, lengths, per_file, info):
    (folder / "meta" / "episodes" / "chunk-000").mkdir(parents=True, exist_ok=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info, indent=4), encoding="utf-8")
    (folder / "meta" / "stats.json").write_text("{}", encoding="utf-8")
    tasks = pa.table({"task_index": [0], "__index_level_0__": ["lift the cube"]})
    pq.write_table(tasks, folder / "meta" / "tasks.parquet")
    number, ends = np.arange(len(lengths)), np.cumsum(lengths)
    episodes = {"episode_index": number, "length": lengths, "tasks": [["lift the cube"]] * len(lengths)}
    episodes |= {"data/chunk_index": number * 0, "data/file_index": number // per_file}
    episodes |= {"dataset_from_index": ends - lengths, "dataset_to_index": ends}
    pq.write_table(pa.table(episodes), folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet")


def change_info(folder, **changes):
    path = folder / "meta" / "info.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
