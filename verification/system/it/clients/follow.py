"""Follows the counting writer with the stock client's watch.Watch and prints every number it sees, in order.

    follow.py KUBECONFIG LAST

A stream that breaks (the server restarts) is resumed from the last resource version, as the client's documentation
says. A version that is too old begins with a list, which is printed as "list N" with the largest number in it.
"""

import sys
import time

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

PATIENCE_SECONDS = 600


def number(config_map):
    return int((config_map.data or {}).get('n', 0))


def main():
    config.load_kube_config(sys.argv[1])
    last, api = int(sys.argv[2]), client.CoreV1Api()
    begun = time.monotonic()
    deadline, version, seen = begun + PATIENCE_SECONDS, None, 0
    while seen < last:
        if time.monotonic() > deadline:
            sys.exit('gave up after %d of %d' % (seen, last))
        try:
            if version is None:
                listed = api.list_namespaced_config_map('default')
                version = listed.metadata.resource_version
                seen = max([number(item) for item in listed.items], default=0)
                print('list %d' % seen, flush=True)
                continue
            for event in watch.Watch().stream(
                api.list_namespaced_config_map,
                'default',
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=60,
            ):
                item = event['object']
                if event['type'] == 'BOOKMARK':
                    version = event['raw_object']['metadata']['resourceVersion']
                    continue
                version = item.metadata.resource_version
                if number(item):
                    seen = number(item)
                    print('%s %d' % (event['type'], seen), flush=True)
                if seen >= last:
                    break
        except ApiException as error:
            print('%.1f s: at %d, version %s: %s' % (time.monotonic() - begun, seen, version, error), file=sys.stderr)
            version = None if error.status == 410 else version
            time.sleep(0.05)
        except (HTTPError, OSError) as error:
            print('%.1f s: at %d, version %s: %s' % (time.monotonic() - begun, seen, version, error), file=sys.stderr)
            time.sleep(0.05)


main()
