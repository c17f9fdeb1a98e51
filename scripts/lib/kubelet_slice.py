"""A part of a large cluster on this machine: the watches, renewals and events of some of its nodes on one server over
one etcd.

The clients are scenarios of `ringwatch load` at the same time. While all are at work, the server's processor time, its
requests and the events that it sent are counted, and `scripts/scaling` compares that time with the model's for the
same counts.
"""

import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

from beside import RINGWATCH, Server, free_port, start_etcd

# All watches are open before it is counted. Scenarios work for longer than all takes; `load` measures nothing
# meanwhile. `idle` begins with a quarter of its duration without watches.
WARM_UP_SECONDS, COUNT_SECONDS = 80, 60
AT_WORK, IDLE = '200s', '120s'
END_SECONDS_MAX = 60
TICKS = os.sysconf('SC_CLK_TCK')


def scenarios(nodes, share):
    """Returns the flags of `load` for so many nodes, which are a share of a cluster with 3,500 writes of pods and one
    event for all nodes a second."""
    long = ['--warm-up=' + AT_WORK, '--duration=5s']
    return {
        'watches without events': ['idle', '--watchers', str(10 * nodes), '--streams', '10', '--duration=' + IDLE],
        'an event for all': [
            'fanout',
            '--watchers',
            str(nodes),
            '--streams',
            '1',
            '--rate',
            '1',
            '--writers',
            '1',
            *long,
        ],
        'events for one': [
            'selective',
            '--watchers',
            str(nodes),
            '--streams',
            '1',
            '--rate',
            '%g' % (3500 * share),
            '--pods',
            '50',
            *long,
        ],
        'renewals': ['renew', '--writers', '16', '--encoding', 'protobuf', *long],
    }


def cpu_seconds(pid):
    fields = pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(') ', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid):
    return int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path('/proc/%d/status' % pid).read_text())[1]) * 1024


def machine_busy():
    """Returns the seconds for which the processors of this machine were busy, and for which they were there."""
    times = [int(it) / TICKS for it in pathlib.Path('/proc/stat').read_text().splitlines()[0].split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


class Counts:
    """Numbers of the server and the machine at one time; the difference of two is what happened between them."""

    def __init__(self, server):
        text = server.ask('GET', '/metrics')[1].decode()
        self.requests = self.sums(text, 'apiserver_request_total', 'verb', 'resource')
        self.events = self.sums(text, 'apiserver_watch_events_total', 'resource')
        pid = server.process.pid
        self.at, self.cpu, self.resident, self.busy = (
            time.monotonic(),
            cpu_seconds(pid),
            resident_bytes(pid),
            machine_busy(),
        )

    @staticmethod
    def sums(text, name, *labels):
        found = {}
        for line in re.findall(r'^%s\{.*$' % name, text, re.M):
            key = tuple(re.search(r'\b%s="([^"]*)"' % label, line)[1] for label in labels)
            found[key] = found.get(key, 0) + float(line.rsplit(' ', 1)[1])
        return found


def end_all(clients):
    """Waits until clients that were told to end have deleted what they made, and kills those that take long."""
    latest = time.monotonic() + END_SECONDS_MAX
    for process in clients:
        try:
            process.wait(max(0, latest - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(nodes, share):
    """Returns counts of the idle server, at the begin and at the end of the time that is counted."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    servers, clients = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with (folder / 'log').open('wb') as log:
            try:
                store = start_etcd(folder, folder, servers, log)[1]
                tokens, port = folder / 'tokens.csv', free_port()
                tokens.write_text('token,admin,1,"system:masters"\n')
                server = Server(
                    [
                        RINGWATCH,
                        'serve',
                        '--secure-port=%d' % port,
                        '--data-dir=%s' % (folder / 'data'),
                        '--etcd-servers=' + store,
                        '--token-auth-file=%s' % tokens,
                        '--bind-address=127.0.0.1',
                        '--disable-admission-plugins=ServiceAccount',
                    ],
                    port,
                    'https',
                    log,
                )
                servers.append(server)
                server.until_ready('/readyz')
                idle = Counts(server)
                for flags in scenarios(nodes, share).values():
                    clients.append(
                        subprocess.Popen(
                            [
                                RINGWATCH,
                                'load',
                                *flags,
                                '--server=https://127.0.0.1:%d' % port,
                                '--token=token',
                                '--insecure-skip-tls-verify',
                                '--http=2',
                                '--runs=1',
                                '--pid=%d' % server.process.pid,
                            ],
                            stdin=subprocess.DEVNULL,
                            stdout=log,
                            stderr=log,
                        )
                    )
                time.sleep(WARM_UP_SECONDS)
                begin = Counts(server)
                time.sleep(COUNT_SECONDS)
                end = Counts(server)
                ended = [client.args[2] for client in clients if client.poll() is not None]
                if ended:
                    raise SystemExit(
                        '%s ended too early: %s' % (', '.join(ended), (folder / 'log').read_text()[-2000:])
                    )
                return idle, begin, end
            finally:
                for process in clients:
                    process.terminate()
                end_all(clients)
                for one in reversed(servers):
                    one.end()
