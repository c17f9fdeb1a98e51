"""Runs of `ringwatch load verify` while something is done to the servers, and what its clients saw.

The clients are those of the same binary as the servers, unless RINGWATCH_LOAD names another. Python's standard library
is enough.
"""

import json
import os
import subprocess

from beside import RINGWATCH
from etcd_cluster import until

LOAD = os.environ.get('RINGWATCH_LOAD', RINGWATCH)
# A run must be over so long after the clients have stopped to write.
SETTLE_SECONDS_MAX = 150
# The columns that must be zero, and the rules of `load verify` that are counted in each.
ZERO = {
    'writes lost': ('lost-update', 'never-written', 'linearizable'),
    'events lost': ('no-gap', 'resume', 'initial-events', 'selector-transition'),
    'repeated': ('no-duplicate', 'unique'),
    'reordered': ('ordered', 'write-order', 'bookmark-early'),
    'stale reads': ('stale-read', 'read-revision', 'snapshot', 'mixed-pages'),
    'hanging watchers': ('final-state',),
}


def under_load(urls, act, folder, log, seconds, flags=(), waits=True):
    """Lets the clients work on servers for some seconds, and calls `act` after a third of them. With `waits` they go
    on until it returns. Returns the outcome of `load verify`, and what went wrong with `act`."""
    asked, done, saved = folder / 'asked', folder / 'done', folder / 'outcome.json'
    for file in (asked, done, saved):
        file.unlink(missing_ok=True)
    wait = 'until [ -e %s ]; do sleep 0.05; done' % done if waits else 'true'
    first, *others = urls
    command = [
        LOAD,
        'load',
        'verify',
        '--server',
        first,
        '--token',
        'token',
        '--insecure-skip-tls-verify',
        '--duration',
        '%ds' % seconds,
        '--save',
        str(saved),
        '--fault',
        'at=%ds cmd=touch %s; %s' % (seconds // 3, asked, wait),
        *flags,
    ]
    for other in others:
        command += ['--also-server', other]
    load = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: asked.exists() or load.poll() is not None, 'the load asks for its fault')
        trouble = None
        try:
            act()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            trouble = 'the fault failed: %s' % error
        done.touch()
        load.wait(seconds + SETTLE_SECONDS_MAX)
    finally:
        load.kill()
        load.wait()
    if not saved.exists():
        raise RuntimeError('load ended without an outcome' + ('; ' + trouble if trouble else ''))
    return json.loads(saved.read_text()), trouble


def judge(outcome, trouble):
    """Returns the counts that must be zero, what else is wrong, and the 410s and the time without a write if nothing
    is."""
    if outcome is None:
        return dict.fromkeys(ZERO, '?'), [trouble], ('?', '?')
    measured = outcome['runs'][0]
    violations = measured.get('violations', {})
    counts = {column: sum(violations.get(it, 0) for it in rules) for column, rules in ZERO.items()}
    named = {rule for rules in ZERO.values() for rule in rules}
    reasons = [it for it in outcome['verdict'].get('reasons', []) if not any(rule + ':' in it for rule in named)]
    counts['hanging watchers'] += sum('has no watch' in it for it in reasons)
    problems = [it for it in reasons if 'has no watch' not in it and ' received of ' not in it]
    if trouble:
        problems.append(trouble)
    figure = measured['figures']
    if figure['objects not judged']['value']:
        counts['writes lost'] = '?'
        problems.append('%d objects were not judged' % figure['objects not judged']['value'])
    is_whole = outcome['verdict']['is'] == 'passed'
    return (
        counts,
        problems,
        tuple(
            '%g' % round(figure[name]['value'], 2) if is_whole else '?'
            for name in ('watches expired (410)', 'longest time without a write done')
        ),
    )


def table(head, rows):
    """Returns a table in Markdown."""
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    lines += ['| ' + ' | '.join(str(it) for it in row) + ' |' for row in rows]
    return '\n'.join(lines) + '\n'
