"""The sizes and SHA-256 sums of the files that D4RL publishes, by their address below the server's.

D4RL publishes no sums. Those of locomotion, AntMaze and Adroit are the ones with which TensorFlow Datasets checks its
downloads of the same addresses (``tensorflow_datasets/d4rl/*/checksums.tsv``). Those of kitchen are from copies of the
files.
"""

MUJOCO, ANT, PEN, KITCHEN = "gym_mujoco_v2/", "ant_maze_new/Ant_maze_", "hand_dapg", "kitchen/"
FILES: dict[str, tuple[int, str]] = {
    f"{MUJOCO}halfcheetah_medium-v2.hdf5": (
        237727262,
        "41324e8487a9556d8cfa4538827f8937f4d63dae3030825ebc9f3a726ed08ca0",
    ),
    f"{MUJOCO}halfcheetah_medium_expert-v2.hdf5": (
        474567252,
        "015db75dae5bbe8e94029b71fa0bafc2073365df0c94744e71031189f3f79c06",
    ),
    f"{MUJOCO}halfcheetah_medium_replay-v2.hdf5": (
        59448533,
        "48d494a4770c11f48260736dec090b78bdca8375647ed4d24bfa5b6610c7f683",
    ),
    f"{MUJOCO}hopper_medium-v2.hdf5": (
        152756557,
        "5bdf1bc4a713c82941de44633df669b36c89850b652a25985166796d25cf71a0",
    ),
    f"{MUJOCO}hopper_medium_expert-v2.hdf5": (
        304537315,
        "9d51ad87f8c905be3880d84c6140bcdb7fbf39a19e046a237f238ba34fec9e26",
    ),
    f"{MUJOCO}hopper_medium_replay-v2.hdf5": (
        75854457,
        "e121c5f7c9857a307baa9edc6a2c3b48e85fedb9ac316ecddd0f48ca7ef4e39b",
    ),
    f"{MUJOCO}walker2d_medium-v2.hdf5": (
        232254996,
        "cf00f43add04c17fdfc2958dd581dea0851b2e5bedbe6fda073758a8f841aeda",
    ),
    f"{MUJOCO}walker2d_medium_expert-v2.hdf5": (
        462197079,
        "6b8d7f868c45bbaedf460be797fb7271b46dee6ebe45fe7a64319f2005b59a04",
    ),
    f"{MUJOCO}walker2d_medium_replay-v2.hdf5": (
        86323963,
        "e75de96a4f77acf7d4e0d6fdf0d7ccb177c26c44bb4388e4fd99f543ccfa18db",
    ),
    f"{ANT}u-maze_noisy_multistart_False_multigoal_False_sparse.hdf5": (
        232533093,
        "188838316eab5882fa0e1dc8398b5e79772f64f27f0b78d6aebe838402a720c6",
    ),
    f"{ANT}u-maze_noisy_multistart_True_multigoal_True_sparse.hdf5": (
        230854793,
        "4aff7f77b97a8dd62e513cac8f57da7cdb458cfac7ac0cec3081b7765f2da59d",
    ),
    f"{ANT}big-maze_noisy_multistart_True_multigoal_False_sparse.hdf5": (
        231110993,
        "527385c14b87892e8c222c43246546d6cd461fa2a5476d0b3b105ae422b7637c",
    ),
    f"{ANT}big-maze_noisy_multistart_True_multigoal_True_sparse.hdf5": (
        231095454,
        "b77764cac90c23e09905539c49ceb3949b49c5b39eb9d51788cc64b9dd0a2c0d",
    ),
    f"{ANT}hardest-maze_noisy_multistart_True_multigoal_False_sparse.hdf5": (
        230880846,
        "e37afef5b80b968b30cad2682f9a93ee1b400e3b58c7a7f45e7d425d03a2b03d",
    ),
    f"{ANT}hardest-maze_noisy_multistart_True_multigoal_True_sparse.hdf5": (
        231183929,
        "dda7acbdde1a94a14aa7b06a7e5d8141e60a03ccdc4578bff34b0444425bf11d",
    ),
    f"{PEN}/pen-v0_demos_clipped.hdf5": (
        2037685,
        "64103c05d3b33b4cc0591db187396a4da58f87b707db99401d8f994cb91a7a4d",
    ),
    f"{PEN}/pen-demos-v0-bc-combined.hdf5": (
        307070889,
        "f881ab4b03c0b8e0b8632b29dd00b803e012637f115b6556645e8eb3c8a0242d",
    ),
    f"{PEN}_v1/pen-human-v1.hdf5": (
        2040573,
        "209e345b2150b633f30a11612612c60f49e941f127ce6c4dc0cd790501c46f9f",
    ),
    f"{PEN}_v1/pen-cloned-v1.hdf5": (
        155074191,
        "6d1a982cee1950501bedebbddedbcbb377e6284d379986c83abac8a6c0be0c22",
    ),
    f"{KITCHEN}mini_kitchen_microwave_kettle_light_slider-v0.hdf5": (
        556544,
        "cd797c38cd52dfbe3f960cef73935cc724847abd189e47a703a7a2315ed60a81",
    ),
    f"{KITCHEN}kitchen_microwave_kettle_light_slider-v0.hdf5": (
        19558459,
        "57bfd9c5fe88a7cf702bbaf8b7cd800d30cd869e7f73416007238d26cd859800",
    ),
    f"{KITCHEN}kitchen_microwave_kettle_bottomburner_light-v0.hdf5": (
        19560760,
        "a30382a50278fdaea2e2d88e5f2836a95bcf9b581d252617872fd6537302721b",
    ),
}
