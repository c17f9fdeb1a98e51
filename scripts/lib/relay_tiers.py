"""A simulation of events on their way through tiers of servers and relays, event by event, from a fixed seed.

An event comes to every server at once, as etcd's watch brings it. A machine gives events on in the order in which they
came; it gives one to all its clients before the next, and its cores share that work evenly. What a delivery costs is
drawn for each event on each machine from a range of docs/records/performance.md. The machine below has the event when
its delivery is done and HOP_SECONDS have passed. What else a machine does (requests, other events) is taken from its
cores as a steady share. Left out are pauses, losses, and the time until a client has read what was written to its
socket.
"""

import heapq
import random

SEED = 1
EVENTS = 300
# One way through the network between two machines, an assumption.
HOP_SECONDS = 0.0005
# The clients of a machine are looked at in so many places in the order of delivery.
PLACES = 20


class Tier:
    """Machines of one kind: how many, how many clients they all have, what a delivery to one costs in us, and the
    cores of each that are free for it."""

    def __init__(self, machines, clients, cost, cores):
        self.machines, self.clients, self.cost, self.cores = machines, clients / machines, cost, cores
        self.free_at, self.busy = [0.0] * machines, 0.0

    def give(self, generator, machine, now):
        """Gives an event that has come now to all clients; returns when that began, and how long it took."""
        work = self.clients * generator.uniform(*self.cost) / 1e6
        began, lasted = max(now, self.free_at[machine]), work / self.cores
        self.free_at[machine] = began + lasted
        self.busy += work
        return began, lasted


class Outcome:
    """The delays in s, sorted, until clients had an event and until the last machine before them had it; and the cores
    that one machine of each tier took."""

    def __init__(self, delays, arrivals, cores):
        self.delays, self.arrivals, self.cores = sorted(delays), sorted(arrivals), cores


def simulate(tiers, rate):
    """Lets events come at random, so many a second."""
    generator, events, now = random.Random(SEED), [], 0.0
    for _ in range(EVENTS):
        now += generator.expovariate(rate)
        events += [(now, 0, machine, now) for machine in range(tiers[0].machines)]
    seconds, delays, arrivals = now, [], []
    heapq.heapify(events)
    while events:
        now, depth, machine, sent = heapq.heappop(events)
        tier = tiers[depth]
        began, lasted = tier.give(generator, machine, now)
        if depth + 1 == len(tiers):
            arrivals.append(now - sent)
            delays += [began + lasted * (place + 1) / PLACES + HOP_SECONDS - sent for place in range(PLACES)]
            continue
        # The machines of the next tier are dealt out to those of this one.
        below = range(machine, tiers[depth + 1].machines, tier.machines)
        for place, child in enumerate(below, 1):
            heapq.heappush(events, (began + lasted * place / len(below) + HOP_SECONDS, depth + 1, child, sent))
    return Outcome(delays, arrivals, [tier.busy / seconds / tier.machines for tier in tiers])


def percentile(sorted_delays, part):
    return sorted_delays[min(len(sorted_delays) - 1, int(len(sorted_delays) * part))]
