"""A Ray cluster of two nodes on this machine, until the standard input of this script ends. Prints its address."""

import os
import sys

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

if __name__ == "__main__":
    from ray.cluster_utils import Cluster

    nodes = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=nodes)
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
