#!/usr/bin/env python3
"""Stands in for the kubelet of a control plane: runs the command of a static pod's manifest, and again whenever the
manifest changes.

Usage: static_pod.py MANIFEST LOG

The command's program is looked for on PATH, as a container's would be in its image. Probes, volumes and all else of
the manifest are not looked at. While there is no manifest nothing runs.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

LOOK_SECONDS = 0.1
# As kubelets wait for a pod to end, unless it says otherwise.
END_SECONDS_MAX = 30


def command_of(manifest):
    """The words of `command:` in a manifest in kubeadm's form; none if there is no file."""
    try:
        lines = iter(manifest.read_text().splitlines())
    except FileNotFoundError:
        return []
    for line in lines:
        if line == '  - command:':
            break
    words = []
    for line in lines:
        if not line.startswith('    - '):
            break
        words.append(line.removeprefix('    - '))
    return words


def end(process):
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    manifest, log = map(pathlib.Path, sys.argv[1:])
    running, process = [], None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    # The runner's shell is gone when this process belongs to another.
    parent = os.getppid()
    try:
        with log.open('a') as output:
            while os.getppid() == parent:
                wanted = command_of(manifest)
                if wanted != running:
                    end(process)
                    process = (
                        subprocess.Popen(wanted, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
                        if wanted
                        else None
                    )
                    running = wanted
                time.sleep(LOOK_SECONDS)
    finally:
        end(process)


main()
