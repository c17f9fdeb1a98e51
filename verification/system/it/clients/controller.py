"""A controller as people write it with the stock client, tried through the end of its leader and of the server.

    controller.py KUBECONFIG            defines a type, starts two controllers, and sees that they do their work
    controller.py KUBECONFIG work NAME  is one of them: it works while it holds the lease

Prints "halfway" when the server may be killed, and "done" after the last check. A controller gives each pump a config
map by server-side apply, and says in the status what it has seen. Whoever loses the lease, or the server, ends and is
started again.
"""

import logging
import os
import subprocess
import sys
import time

from kubernetes import client, config, dynamic
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError, UnprocessibleEntityError
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from urllib3.exceptions import HTTPError

PATIENCE_SECONDS = 120
LOOK_PERIOD_SECONDS = 0.1
NAMESPACE = 'default'
LEASE = 'pump-controller'
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 4, 3, 1
PUMPS = 12
APPLIED = {'field_manager': LEASE, 'force_conflicts': True}
AWAY = (ApiException, HTTPError, OSError, dynamic.exceptions.DynamicApiError)
DEFINITION = {
    'apiVersion': 'apiextensions.k8s.io/v1',
    'kind': 'CustomResourceDefinition',
    'metadata': {'name': 'pumps.example.com'},
    'spec': {
        'group': 'example.com',
        'scope': 'Namespaced',
        'names': {'plural': 'pumps', 'kind': 'Pump'},
        'versions': [
            {
                'name': 'v1',
                'served': True,
                'storage': True,
                'subresources': {
                    'status': {},
                    'scale': {'specReplicasPath': '.spec.rate', 'statusReplicasPath': '.status.rate'},
                },
                'schema': {
                    'openAPIV3Schema': {
                        'type': 'object',
                        'properties': {
                            'spec': {
                                'type': 'object',
                                'required': ['rate'],
                                'properties': {
                                    'rate': {'type': 'integer', 'minimum': 0},
                                    'rateMax': {'type': 'integer', 'default': 100},
                                },
                                'x-kubernetes-validations': [
                                    {'rule': 'self.rate <= self.rateMax', 'message': 'too fast'}
                                ],
                            },
                            'status': {
                                'type': 'object',
                                'properties': {'observedGeneration': {'type': 'integer'}, 'rate': {'type': 'integer'}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def soon(what, look):
    """Looks until there is something to see. The server may be away meanwhile."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            seen = look()
        except AWAY:
            seen = None
        if seen:
            return seen
        if time.monotonic() > deadline:
            sys.exit('%s did not come' % what)
        time.sleep(LOOK_PERIOD_SECONDS)


def connect(kubeconfig):
    config.load_kube_config(kubeconfig)
    return dynamic.DynamicClient(client.ApiClient())


def resources(api):
    """The types, once discovery has them."""

    def look():
        try:
            return (
                api.resources.get(api_version='example.com/v1', kind='Pump'),
                api.resources.get(api_version='v1', kind='ConfigMap'),
            )
        except ResourceNotFoundError:
            api.resources.invalidate_cache()

    return soon('the resource', look)


def work(api, name):
    """Stands for leader, and leads until anything goes wrong."""
    pumps, config_maps = resources(api)

    def lead():
        version = None
        while True:
            if version is None:
                listed = pumps.get(namespace=NAMESPACE)
                for pump in listed.items:
                    reconcile(pumps, config_maps, pump)
                version = listed.metadata.resourceVersion
            for event in pumps.watch(namespace=NAMESPACE, resource_version=version, timeout=30):
                version = event['object'].metadata.resourceVersion
                if event['type'] in ('ADDED', 'MODIFIED'):
                    reconcile(pumps, config_maps, event['object'])

    lock = LeaseLock(LEASE, NAMESPACE, name)
    leaderelection.LeaderElection(
        electionconfig.Config(
            lock, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, onstarted_leading=lead, onstopped_leading=lambda: None
        )
    ).run()


def reconcile(pumps, config_maps, pump):
    meta = pump.metadata
    if (pump.get('status') or {}).get('observedGeneration') == meta.generation:
        return
    config_maps.server_side_apply(
        {
            'apiVersion': 'v1',
            'kind': 'ConfigMap',
            'metadata': {
                'name': 'pump-' + meta.name,
                'labels': {'pump': meta.name},
                'ownerReferences': [
                    {
                        'apiVersion': 'example.com/v1',
                        'kind': 'Pump',
                        'name': meta.name,
                        'uid': meta.uid,
                        'controller': True,
                    }
                ],
            },
            'data': {'rate': str(pump.spec.rate)},
        },
        name='pump-' + meta.name,
        namespace=NAMESPACE,
        **APPLIED,
    )
    try:
        pumps.status.server_side_apply(
            {
                'apiVersion': 'example.com/v1',
                'kind': 'Pump',
                'metadata': {'name': meta.name, 'uid': meta.uid},
                'status': {'observedGeneration': meta.generation, 'rate': pump.spec.rate},
            },
            name=meta.name,
            namespace=NAMESPACE,
            **APPLIED,
        )
    except (ConflictError, NotFoundError):
        pass  # it is gone, or another by now


class Controllers:
    """Two processes, started again whenever one ends."""

    def __init__(self):
        self.started, self.running = 0, {}

    def keep(self):
        for name in [name for name, process in self.running.items() if process.poll() is not None]:
            del self.running[name]
        while len(self.running) < 2:
            self.started += 1
            name = 'controller-%d' % self.started
            self.running[name] = subprocess.Popen([sys.executable, __file__, sys.argv[1], 'work', name])
        return True

    def kill(self, name):
        """Kills one, unless it has ended by itself, as one does that was too slow to renew the lease."""
        process = self.running.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def end(self):
        for name in list(self.running):
            self.kill(name)


def oversee(api):
    api.resources.get(api_version='apiextensions.k8s.io/v1', kind='CustomResourceDefinition').create(DEFINITION)
    pumps, config_maps = resources(api)
    soon('the type', lambda: pumps.get(namespace=NAMESPACE) is not None)
    informer = SharedInformer(client.CoreV1Api().list_namespaced_config_map, namespace=NAMESPACE, label_selector='pump')
    informer.start()
    controllers = Controllers()
    try:
        for number in range(PUMPS):
            pumps.create(pump('p%d' % number, number), namespace=NAMESPACE)
        settle(controllers, pumps, informer)
        refuses(pumps)
        leases = client.CoordinationV1Api()
        first = leases.read_namespaced_lease(LEASE, NAMESPACE).spec.holder_identity
        controllers.kill(first)
        change(pumps, 20)
        settle(controllers, pumps, informer)
        second = leases.read_namespaced_lease(LEASE, NAMESPACE).spec.holder_identity
        assert second != first, first
        print('halfway', flush=True)
        for rate in (30, 40, 50):
            change(pumps, rate)
            settle(controllers, pumps, informer)
    finally:
        controllers.end()
        informer.stop()


def pump(name, rate):
    return {'apiVersion': 'example.com/v1', 'kind': 'Pump', 'metadata': {'name': name}, 'spec': {'rate': rate}}


def change(pumps, rate):
    """Gives every pump another rate: by a patch, by its scale, or as a whole."""
    for number in range(PUMPS):
        name, wanted = 'p%d' % number, {'spec': {'rate': rate + number}}
        merge = {'name': name, 'namespace': NAMESPACE, 'content_type': 'application/merge-patch+json'}

        def write():
            if number % 3 == 0:
                return pumps.patch(wanted, **merge)
            if number % 3 == 1:
                return pumps.scale.patch({'spec': {'replicas': rate + number}}, **merge)
            found = pumps.get(name=name, namespace=NAMESPACE).to_dict()
            found['spec']['rate'] = rate + number
            return pumps.replace(found, namespace=NAMESPACE)

        soon('a change of %s' % name, write)


def refuses(pumps):
    old = pumps.get(name='p0', namespace=NAMESPACE).to_dict()
    pumps.patch(
        {'metadata': {'labels': {'a': 'b'}}},
        name='p0',
        namespace=NAMESPACE,
        content_type='application/merge-patch+json',
    )
    for error, write in [
        (ConflictError, lambda: pumps.replace(old, namespace=NAMESPACE)),
        (UnprocessibleEntityError, lambda: pumps.create(pump('fast', 101), namespace=NAMESPACE)),
        (UnprocessibleEntityError, lambda: pumps.create(pump('slow', -1), namespace=NAMESPACE)),
    ]:
        try:
            write()
            sys.exit('what must be refused was done')
        except error as refused:
            assert error is ConflictError or 'spec' in refused.body, refused.body


def settle(controllers, pumps, informer):
    """Waits until all is done, and the informer has seen it."""

    def settled():
        controllers.keep()
        items = pumps.get(namespace=NAMESPACE).items
        wanted = {'pump-' + item.metadata.name: (item.metadata.uid, str(item.spec.rate)) for item in items}
        seen = {
            item.metadata.name: (item.metadata.owner_references[0].uid, item.data['rate'])
            for item in informer.cache.list()
        }
        observed = all(
            (item.get('status') or {}).get('observedGeneration') == item.metadata.generation for item in items
        )
        return len(items) == PUMPS and observed and wanted == seen

    soon('the end of the work', settled)


def main():
    api = connect(sys.argv[1])
    if sys.argv[2:3] == ['work']:
        try:
            work(api, sys.argv[3])
        finally:
            os._exit(1)  # a thread may still be working
    oversee(api)
    print('done')


if __name__ == '__main__':
    logging.disable(logging.CRITICAL)
    main()
