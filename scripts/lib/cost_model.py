"""The cost model of docs/scaling.md: what a cluster takes of servers, relays and etcd, by what this project has
measured.

Everything is a product of a rate or a number and a cost of `measured_costs`; nothing is fitted. Costs of two cores are
taken for those of many.
"""

import dataclasses
import math

from measured_costs import COSTS, LIMITS, Range

US, GIB, KIB = 1e-6, 2**30, 2**10
COST = {name: cost.range() for name, cost in COSTS.items()}
LIMIT = {name: cost.range().low for name, cost in LIMITS.items()}
# A write of a pod is one of a ConfigMap, and what a pod takes more than that without sockets.
POD_WRITE = COST['write'] + Range(COST['pod'].low - COST['map'].low, COST['pod'].high - COST['map'].high)
# Cores of a quiet connection, with one watch and with eight.
QUIET = Range(COST['quiet_one'].low / 100 / 10_000, COST['quiet_eight'].high / 100 / 7_500)
# The machines of the layouts, and the part of them that is used, so that others can take over what one had.
CORES, RELAY_CORES, USED = 16, 4, 0.5
SERVERS_MIN, RELAYS_MIN, RELAYS_OF_A_MIDDLE = 3, 2, 16


@dataclasses.dataclass
class Cluster:
    """The inputs, each with what it is."""

    nodes: int = dataclasses.field(metadata={'is': 'nodes'})
    pods_a_node: float = dataclasses.field(default=30, metadata={'is': 'pods a node'})
    pods_a_second: float = dataclasses.field(
        default=50, metadata={'is': 'pods that are created, and as many that end, a second'}
    )
    lease_seconds: float = dataclasses.field(default=10, metadata={'is': 'seconds between renewals of a Lease'})
    status_seconds: float = dataclasses.field(default=300, metadata={'is': "seconds between writes of a node's status"})
    writes_a_pod: float = dataclasses.field(default=7, metadata={'is': 'writes of a pod in its life'})
    events_a_pod: float = dataclasses.field(default=5, metadata={'is': 'Events of a pod'})
    kubelet_watches: int = dataclasses.field(default=8, metadata={'is': 'watches of a kubelet, on one connection'})
    proxy_watches: int = dataclasses.field(default=3, metadata={'is': 'watches of kube-proxy, on another'})
    everywhere: float = dataclasses.field(
        default=1, metadata={'is': 'changes a second that every node gets, of EndpointSlices and Services'}
    )
    watchers: int = dataclasses.field(default=20, metadata={'is': 'watchers of all pods and nodes'})
    sharded: int = dataclasses.field(
        default=2, metadata={'is': 'controllers beside them whose replicas have shards of pods and nodes'}
    )
    replicas: int = dataclasses.field(default=3, metadata={'is': 'replicas of each sharded controller'})
    definitions: int = dataclasses.field(default=100, metadata={'is': 'custom resource definitions'})

    @property
    def pods(self):
        return self.nodes * self.pods_a_node

    @property
    def renewals(self):
        return self.nodes / self.lease_seconds

    @property
    def pod_writes(self):
        return self.pods_a_second * self.writes_a_pod

    @property
    def statuses(self):
        return self.nodes / self.status_seconds

    @property
    def changes(self):
        """Changes a second of pods and nodes."""
        return self.pod_writes + self.statuses

    @property
    def events(self):
        return self.pods_a_second * self.events_a_pod

    @property
    def connections(self):
        return 2 * self.nodes


SIZES = [
    Cluster(5_000, replicas=3),
    Cluster(100_000, pods_a_node=10, pods_a_second=500, replicas=10),
    Cluster(1_000_000, pods_a_node=1, pods_a_second=1_000, replicas=20),
]


def writing(cluster):
    """Cores for requests, by what they are for; a relay passes these on."""
    return {
        'renewals of Leases': COST['renewal'] * cluster.renewals * US,
        'writes of pods': POD_WRITE * cluster.pod_writes * US,
        "writes of nodes' status": POD_WRITE * cluster.statuses * US,
        'Events': COST['write'] * cluster.events * US,
        'a read before half of the writes of pods and nodes': COST['get'] * (cluster.changes / 2) * US,
    }


def told_to_nodes(cluster):
    """Cores for what watches of nodes get; a relay takes these over."""
    return {
        'changes of pods to their kubelets': COST['lone'] * cluster.pod_writes * US,
        'changes that every node gets': COST['lone'] * cluster.everywhere * cluster.nodes * US,
        'quiet connections: PINGs, and a bookmark a minute and watch': QUIET * cluster.connections,
    }


def told_to_controllers(cluster, shards=True):
    """Cores for what watchers of everything get, and the one that watches Leases."""
    copies = cluster.watchers + cluster.sharded * (1 if shards else cluster.replicas)
    return COST['busy'] * (cluster.changes * copies + cluster.renewals) * US


def rates_of_ingest(leases):
    """Returns the seconds of one thread that a second of changes takes on each server."""

    def of(cluster):
        lease = Range(1 / COST['ingest'].high, 1 / COST['ingest'].low) * (cluster.renewals if leases else 0)
        return lease + Range(1 / COST['ingest_pod'].high, 1 / COST['ingest_pod'].low) * (
            cluster.changes + cluster.everywhere
        )

    return of


ingest, ingest_of_a_relay = rates_of_ingest(True), rates_of_ingest(False)


def window_seconds(rate, bytes_each):
    """Returns for how many seconds the history of a type reaches back."""
    by_bytes = LIMIT['window_mib'] * 2**20 / (rate * bytes_each)
    return min(LIMIT['window_seconds'], LIMIT['window_events'] / rate, by_bytes)


def pods_window_seconds(cluster):
    return window_seconds(cluster.pod_writes, COST['pod_stored'].high)


def leases_window_seconds(cluster):
    return window_seconds(cluster.renewals, COST['lease_stored'].high)


def history_bytes(cluster, leases):
    """Returns the memory of the histories of pods and nodes, and of Leases."""
    pods = min(LIMIT['window_mib'] * 2**20, LIMIT['window_seconds'] * cluster.pod_writes * COST['pod_stored'].high)
    nodes = min(LIMIT['window_mib'] * 2**20, LIMIT['window_seconds'] * cluster.statuses * COST['pod_stored'].high)
    events = leases_window_seconds(cluster) * cluster.renewals if leases else 0
    return COST['history'] * events + Range(pods + nodes, pods + nodes)


def cached_bytes(cluster, leases=True):
    """Returns the memory of a server for itself, definitions, pods, nodes and Leases, and their histories."""
    objects = COST['pod_memory'] * (cluster.pods + cluster.nodes) + COST['lease_memory'] * (
        cluster.nodes if leases else 0
    )
    return (
        COST['empty'] * 1e6
        + COST['definition'] * (cluster.definitions * KIB)
        + objects
        + history_bytes(cluster, leases)
    )


def watch_bytes(cluster):
    """Returns the memory of all watches of nodes, wherever they are."""
    more = cluster.kubelet_watches + cluster.proxy_watches - 2
    return (COST['connection'] * cluster.connections + COST['stream'] * (cluster.nodes * more)) * KIB


def stored_bytes(cluster):
    return COST['pod_stored'].low * (cluster.pods + cluster.nodes) + COST['lease_stored'].low * cluster.nodes


def uncompacted_bytes(cluster):
    """Returns what etcd keeps of replaced versions just before a compaction."""
    seconds = LIMIT['compaction'] * 60
    return seconds * (COST['pod_stored'].low * cluster.changes + COST['lease_stored'].low * cluster.renewals)


def coming_back(cluster):
    """CPU seconds until all nodes have their watches again, after all have lost them."""
    more = cluster.kubelet_watches + cluster.proxy_watches - 2
    return (COST['connect'] * cluster.connections + COST['open'] * (cluster.nodes * more)) * US


@dataclasses.dataclass
class Layout:
    """Numbers of machines, and what the busiest of each kind has."""

    servers: int
    middle: int
    leaves: int
    server_cores: Range
    leaf_cores: Range
    server_bytes: Range
    leaf_bytes: Range
    etcd_cores: Range


def machines(cores_each, cores, own, connections):
    """Returns how many machines do this work, if each has `own` work beside its share and they share the
    connections."""
    free = cores_each * USED - own.high
    return max(math.ceil(cores.high / free), math.ceil(connections / (LIMIT['connections'] * USED)))


def layout(cluster, tiers):
    """Returns the smallest layout with so many tiers of relays between nodes and servers."""
    requests = sum(writing(cluster).values(), Range(0, 0)) + told_to_controllers(cluster)
    nodes = sum(told_to_nodes(cluster).values(), Range(0, 0))
    no = Range(0, 0)
    leaves = (
        max(RELAYS_MIN, machines(RELAY_CORES, nodes, ingest_of_a_relay(cluster), cluster.connections)) if tiers else 0
    )
    middle = max(RELAYS_MIN, math.ceil(leaves / RELAYS_OF_A_MIDDLE)) if tiers == 2 else 0
    feeds = COST['busy'] * ((cluster.changes + cluster.everywhere) * (middle or leaves)) * US
    shared = requests + (feeds if tiers else nodes)
    servers = max(SERVERS_MIN, machines(CORES, shared, ingest(cluster), 0 if tiers else cluster.connections))
    watches = watch_bytes(cluster)
    share = no if tiers else watches * (1 / servers)
    return Layout(
        servers,
        middle,
        leaves,
        shared * (1 / servers) + ingest(cluster),
        nodes * (1 / leaves) + ingest_of_a_relay(cluster) if tiers else no,
        cached_bytes(cluster) + share,
        cached_bytes(cluster, leases=False) + watches * (1 / leaves) if tiers else no,
        COST['etcd_watch'] * ((cluster.renewals + cluster.changes) * servers) * US,
    )
