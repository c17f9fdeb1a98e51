"""What this project has measured, as the cost model of docs/scaling.md takes it, each figure with the lines that say
it.

A cost is a range: the least and the most that docs/records/performance.md tells of the same work, on different
machines and in different runs. Figures are written as they stand there, so that `absent` can look for them: whoever
measures anew changes that page, and is told to change this table as well.
"""

import pathlib
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BESIDE = 'With `ringwatch load`, beside kube-apiserver'
MEMORY = 'Memory of objects'
NODES = 'Connections of nodes'


class Range(typing.NamedTuple):
    """From the least to the most."""

    low: float
    high: float

    def __add__(self, other):
        return Range(self.low + other.low, self.high + other.high)

    def __radd__(self, zero):
        return self

    def __mul__(self, factor):
        return Range(self.low * factor, self.high * factor)


class Cost(typing.NamedTuple):
    """A figure: the least and the most as they are written, what to multiply them by, and the lines in which they
    are."""

    what: str
    unit: str
    low: str
    high: str
    section: str
    command: str
    lines: tuple
    file: str = 'docs/records/performance.md'

    def range(self):
        return Range(*sorted(float(it.replace(',', '').replace('_', '')) for it in (self.low, self.high)))


COSTS = {
    'renewal': Cost(
        'the renewal of a Lease over etcd',
        'us',
        '134',
        '198',
        BESIDE,
        '`load renew --writers 64 --http 2 --encoding protobuf`',
        ('134 (132 .. 136) us after', '| `renew`, a renewal; renewals a second | 198 us; 5,361 |'),
    ),
    'write': Cost(
        'another write of 1 KiB over etcd',
        'us',
        '337',
        '1,007',
        BESIDE,
        '`load write`',
        (
            'Over etcd 3.5 that syncs, on a quiet machine, `write --runs 5`: **337; 337; 375 us**',
            '| `write`: create; update; delete | 1,007; 858; 1,007 us |',
        ),
    ),
    'pod': Cost(
        'a write of a pod of 7 KB, without sockets and etcd',
        'us',
        '390',
        '620',
        BESIDE,
        '`cargo bench --bench writes`',
        ('A pod of 7 KB takes 390 .. 540, 470 .. 620',),
    ),
    'map': Cost(
        'the same of a ConfigMap of 1 KiB: a create at the most, an update at the least',
        'us',
        '55',
        '85',
        BESIDE,
        '`cargo bench --bench writes`',
        ("between the request's bytes and the answer's is 44 .. 55 us, for an update 85 .. 113 and",),
    ),
    'get': Cost(
        'a read of one object',
        'us',
        '24',
        '350',
        BESIDE,
        '`load get`',
        (
            '| `get`, any version; consistent | 32; 24 us, 40; 24 us |',
            '| `get`, any version; consistent | 95; 350 us |',
        ),
    ),
    'lone': Cost(
        'an event to a watch on a connection of its own',
        'us',
        '9.9',
        '13.5',
        BESIDE + '"; "Before and after, in one run',
        '`load fanout --http 2 --streams 1`',
        ('| 1; 5,000; 4 | 9.9 us |', '1 stream, 1,000; 5,000 watches | 13.9; 15.5 us | 11.7; 13.5 us |'),
    ),
    'busy': Cost(
        'an event of many on one watch',
        'us',
        '0.59',
        '6.3',
        BESIDE,
        '`load burst`, `load fanout --rate 100`',
        (
            '64 writes at once to 1,000 watches, a delivery | 0.59; 0.69 us',
            '| `steady-1k`; `busy-1k`; `steady-5k` | 6.3; 5.6; 9.9 us |',
        ),
    ),
    'quiet_one': Cost(
        '10,000 quiet connections with one watch: PINGs, and a bookmark a minute',
        '% of a core',
        '1.80',
        '1.80',
        NODES,
        '`load idle --http 2 --streams 1`',
        ('| 1; 10,000 | 59.6 KiB | 588 us | 1.80 % of a core |',),
    ),
    'quiet_eight': Cost(
        '7,500 quiet connections with eight watches',
        '% of a core',
        '2.53',
        '2.53',
        NODES,
        '`load idle --http 2 --streams 8`',
        ('| 8; 7,500 | 83 KiB | 1,000 us | 2.53 % of a core |',),
    ),
    'ingest': Cost(
        'changes of Leases that a server takes in, by one thread',
        'a second',
        '239,500',
        '348,000',
        'Before and after, in one run"; "Changes from etcd',
        '`cargo bench --bench ingest`',
        ('Lease renewals a second on a core; of 20 types | 126,700; 116,100 | 239,500; 276,800', '316,000 .. 348,000'),
    ),
    'ingest_pod': Cost(
        'changes of 5 KB',
        'a second',
        '189,000',
        '204,000',
        'Changes from etcd',
        '`cargo bench --bench ingest`',
        ('189,000 .. 204,000',),
    ),
    'etcd_watch': Cost(
        "an event from etcd to a watch of its own (etcd's CPU)",
        'us',
        '11.6',
        '12.3',
        BESIDE,
        '`-- etcd` of a bench that is gone',
        ('etcd spends 11.9 us (11.6 .. 12.3)',),
    ),
    'connection': Cost(
        'memory of an HTTP/2 connection with a watch',
        'KiB',
        '59.6',
        '59.9',
        NODES,
        '`load idle --http 2 --streams 1`',
        ('| 1; 5,000 (2 starts) | 59.6; 59.9 KiB |',),
    ),
    'stream': Cost(
        'memory of one more watch on a connection',
        'KiB',
        '2.5',
        '4.4',
        BESIDE + '"; "Before and after, in one run',
        '`load idle --http 2`',
        ('`--http 2` | 2.5; 3.0 KiB |', '12.1; **4.4 KiB**'),
    ),
    'connect': Cost(
        'a new connection and its watch',
        'us',
        '246',
        '588',
        'Before and after, in one run"; "' + NODES,
        '`load idle`',
        ('253; 27 us | 246; 33 us', '| 1; 10,000 | 59.6 KiB | 588 us |'),
    ),
    'open': Cost(
        'one more watch on a connection, opened or resumed',
        'us',
        '28',
        '93',
        BESIDE,
        '`load idle --http 2`, `load resume --http 2`',
        ('| 266; 28 us |', '`resume-10k-h2`, a watch | 255; 93 us |'),
    ),
    'list': Cost(
        'a list of 100,000 objects, protobuf, any version',
        'ms',
        '92',
        '120',
        'Before and after, in one run',
        '`benches/compare-builds`',
        ('list of all, any version, JSON; protobuf | 423; 92 ms | 238; **120 ms** |',),
    ),
    'pod_memory': Cost(
        'memory of a pod of 5,041 bytes',
        'bytes',
        '5,785',
        '6,023',
        'Over the real server, TLS"; "' + MEMORY,
        '`memory` of a bench that is gone',
        ('20,000 objects of 4,971 bytes take 5,785', 'listed | 6,023 bytes | 5,041 bytes stored |'),
    ),
    'pod_stored': Cost(
        'the same in the store',
        'bytes',
        '5,041',
        '5,041',
        'Over the real server, TLS',
        'as above',
        ('listed | 6,023 bytes | 5,041 bytes stored |',),
    ),
    'lease_memory': Cost(
        'memory of a Lease, over etcd',
        'bytes',
        '820',
        '995',
        MEMORY,
        '`cargo bench --bench ingest`',
        (
            'the state of a million Leases took 995 bytes each, 1.89 times their 527 bytes of key and',
            'value, and takes 820',
        ),
    ),
    'lease_stored': Cost(
        'the same in the store', 'bytes', '527', '527', MEMORY, 'as above', ('1.89 times their 527 bytes',)
    ),
    'history': Cost(
        'memory of an event of history, without the object',
        'bytes',
        '170',
        '2,265',
        MEMORY,
        '`cargo bench --bench resident`',
        ('170 bytes an event. Where 100,000 change in any order it is 1,770, and 2,265 among 1,000,000',),
    ),
    'empty': Cost(
        'a server without objects',
        'MB',
        '38',
        '52',
        MEMORY,
        '`VmRSS`',
        ('38 .. 41 MB with the setting of ce4fd113 and 48 .. 52 MB before',),
    ),
    'definition': Cost(
        'a custom resource definition',
        'KiB',
        '168',
        '168',
        'Definitions of custom resources',
        '`benches/definitions 1000`',
        ('| 168 KiB; 17 KiB |',),
    ),
}
# Bounds of the code.
LIMITS = {
    'connections': Cost(
        'authenticated connections',
        '',
        '65,536',
        '65,536',
        'Connections',
        '',
        ('| authenticated connections | user | 65,536,',),
        'docs/bounds.md',
    ),
    'window_events': Cost(
        'events of history of a type',
        '',
        '102,400',
        '102,400',
        '',
        '',
        ('100 newer ones are kept, or when 102,400 newer ones are',),
        'src/storage/cacher/window/event_window.rs',
    ),
    'window_mib': Cost(
        'their bytes',
        'MiB',
        '256',
        '256',
        '',
        '',
        ('bytes_max: 256 << 20',),
        'src/storage/cacher/window/event_window.rs',
    ),
    'window_seconds': Cost(
        'their age',
        's',
        '75',
        '75',
        '',
        '',
        ('age: Duration::from_secs(75)',),
        'src/storage/cacher/window/event_window.rs',
    ),
    'compaction': Cost(
        'minutes between compactions of etcd',
        'min',
        '5',
        '5',
        '',
        '',
        ('default_value = "5m", value_parser = duration::parse)]\n    pub etcd_compaction_interval',),
        'crates/server/src/config/flags/etcd.rs',
    ),
}


def absent():
    """Yields what of the table its sources do not say."""
    for name, cost in {**COSTS, **LIMITS}.items():
        text = (ROOT / cost.file).read_text()
        words = ' '.join(text.split())
        for line in cost.lines:
            if ' '.join(line.split()) not in words:
                yield '%s: %s does not say %r' % (name, cost.file, line)
        for figure in {cost.low, cost.high}:
            if not any(figure in line for line in cost.lines):
                yield '%s: no line has the figure %s' % (name, figure)
        for section in cost.section.split('"; "') if cost.file == 'docs/records/performance.md' else ():
            if '\n### %s\n' % section not in text:
                yield '%s: %s has no section %r' % (name, cost.file, section)
