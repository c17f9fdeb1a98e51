"""A real Prometheus with the rules of deploy/, their times shortened, for scripts that see alerts fire.

Python's standard library is enough.
"""

import http.client
import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.parse

from beside import Server, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RULES = ROOT / 'deploy/prometheus/rules.yaml'
DASHBOARD = ROOT / 'deploy/grafana/ringwatch.json'
# A scrape may take two seconds while the store does not answer.
SCRAPE_SECONDS = 3
# Rates need several scrapes.
WINDOW_SECONDS_MIN = 4 * SCRAPE_SECONDS
UNITS = {'s': 1, 'm': 60, 'h': 3600}
# The series of a range that Prometheus returns at most.
POINTS_MAX = 10_000


def program(name):
    """Returns a program of Prometheus, of .tools or of PATH; None if there is none."""
    place = ROOT / '.tools/bin' / name
    return str(place) if place.exists() else shutil.which(name)


def shortened(rules, scale):
    """Returns rules whose windows and `for` are shorter by a factor."""

    def seconds(match):
        return int(match[1]) * UNITS[match[2]] / scale

    rules = re.sub(r'\[(\d+)([smh])\]', lambda it: '[%ds]' % max(seconds(it), WINDOW_SECONDS_MIN), rules)
    return re.sub(r'for: (\d+)([smh])', lambda it: 'for: %ds' % max(seconds(it), 1), rules)


def scrapes(job, targets, authorization=None, **certificate):
    """Returns a job of scrapes, with a token or with a certificate."""
    job = {
        'job_name': job,
        'scheme': 'https',
        'tls_config': {'insecure_skip_verify': True, **certificate},
        'file_sd_configs': [{'files': [str(targets)], 'refresh_interval': '1s'}],
    }
    return {**job, 'authorization': authorization} if authorization else job


class Prometheus:
    """The process, which scrapes all servers whose ports it is told, and evaluates the rules."""

    def __init__(self, folder, scale, log):
        self.folder, self.began = folder, time.time()
        rules, config = folder / 'rules.yaml', folder / 'prometheus.yaml'
        rules.write_text(shortened(RULES.read_text(), scale))
        subprocess.run([program('promtool'), 'check', 'rules', str(rules)], check=True, stdout=log, stderr=log)
        config.write_text(
            json.dumps(
                {
                    'global': {
                        'scrape_interval': '%ds' % SCRAPE_SECONDS,
                        'scrape_timeout': '%ds' % SCRAPE_SECONDS,
                        'evaluation_interval': '1s',
                    },
                    'rule_files': [str(rules)],
                    'scrape_configs': [
                        scrapes('apiserver', folder / 'servers.json', authorization={'credentials': 'token'}),
                        scrapes(
                            'relay',
                            folder / 'relays.json',
                            cert_file=str(folder / 'relay.crt'),
                            key_file=str(folder / 'relay.key'),
                        ),
                    ],
                }
            )
        )
        port = free_port()
        self.server = Server(
            [
                program('prometheus'),
                '--config.file=%s' % config,
                '--storage.tsdb.path=%s' % (folder / 'prometheus'),
                '--web.listen-address=127.0.0.1:%d' % port,
                '--log.level=warn',
            ],
            port,
            'http',
            log,
        )
        self.server.until_ready('/-/ready')

    def scrape(self, kind, ports):
        """Scrapes the `servers` or `relays` at these ports, whose names the label `instance` has."""
        groups = [
            {'targets': ['127.0.0.1:%d' % port], 'labels': {'instance': name, 'job': 'apiserver'}}
            for name, port in ports.items()
        ]
        (self.folder / (kind + '.json')).write_text(json.dumps(groups))

    def ask(self, path, **parameters):
        try:
            status, body = self.server.ask('GET', path + '?' + urllib.parse.urlencode(parameters))
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeError('prometheus does not answer: %s' % error) from error
        if status != 200:
            raise RuntimeError('%s: %s' % (parameters, body.decode(errors='replace')))
        return json.loads(body)['data']

    def firing(self):
        """Returns the labels of the alerts that fire."""
        return [it['labels'] for it in self.ask('/api/v1/alerts')['alerts'] if it['state'] == 'firing']

    def has_data(self, expression):
        """True if a query has returned a number at any time since the start."""
        step = max(SCRAPE_SECONDS, int((time.time() - self.began) / POINTS_MAX) + 1)
        found = self.ask('/api/v1/query_range', query=expression, start=self.began, end=time.time(), step=step)[
            'result'
        ]
        return any(value != 'NaN' for series in found for _, value in series['values'])


def recorded():
    """Returns the names of the series that recording rules make."""
    return re.findall(r'- record: (\S+)', RULES.read_text())


def alerts():
    """Returns the names of the alerts."""
    return re.findall(r'- alert: (\S+)', RULES.read_text())


def queries(window):
    """Returns the queries of the dashboard, by panel, with their variables replaced."""
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        for target in panel.get('targets', []):
            expression = (
                target['expr']
                .replace('$__rate_interval', window)
                .replace('$job', 'apiserver')
                .replace('$instance', '.*')
            )
            yield panel['title'], expression
