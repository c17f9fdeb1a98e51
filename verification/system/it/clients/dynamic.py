"""Defines a type, then works with its objects through the stock client's dynamic client, which knows only what
discovery says.

    dynamic.py KUBECONFIG

Prints "done" after the last check.
"""

import os
import sys
import tempfile
import time

from kubernetes import config, dynamic
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError

PATIENCE_SECONDS = 120
LOOK_PERIOD_SECONDS = 0.05
DEFINITION = {
    'apiVersion': 'apiextensions.k8s.io/v1',
    'kind': 'CustomResourceDefinition',
    'metadata': {'name': 'levers.example.com'},
    'spec': {
        'group': 'example.com',
        'scope': 'Namespaced',
        'names': {'plural': 'levers', 'kind': 'Lever'},
        'versions': [
            {
                'name': 'v1',
                'served': True,
                'storage': True,
                'subresources': {'status': {}},
                'schema': {
                    'openAPIV3Schema': {
                        'type': 'object',
                        'properties': {
                            'spec': {
                                'type': 'object',
                                'properties': {
                                    'length': {'type': 'integer', 'minimum': 1, 'default': 7},
                                    'ends': {
                                        'type': 'array',
                                        'x-kubernetes-list-type': 'map',
                                        'x-kubernetes-list-map-keys': ['side'],
                                        'items': {
                                            'type': 'object',
                                            'required': ['side'],
                                            'properties': {'side': {'type': 'string'}, 'load': {'type': 'integer'}},
                                        },
                                    },
                                },
                            },
                            'status': {'type': 'object', 'properties': {'angle': {'type': 'integer'}}},
                        },
                    }
                },
            }
        ],
    },
}


def soon(what, look):
    """Looks until there is something to see."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        seen = look()
        if seen is not None:
            return seen
        if time.monotonic() > deadline:
            sys.exit('%s did not come' % what)
        time.sleep(LOOK_PERIOD_SECONDS)


def levers(client):
    """The resource, if discovery has it now."""
    client.resources.invalidate_cache()
    try:
        return client.resources.get(api_version='example.com/v1', kind='Lever')
    except ResourceNotFoundError:
        return None


def lever(name, spec):
    return {'apiVersion': 'example.com/v1', 'kind': 'Lever', 'metadata': {'name': name}, 'spec': spec}


def main():
    with tempfile.TemporaryDirectory() as folder:
        api = config.new_client_from_config(sys.argv[1])
        works(dynamic.DynamicClient(api, cache_file=os.path.join(folder, 'discovery.json')))


def works(client):
    definitions = client.resources.get(api_version='apiextensions.k8s.io/v1', kind='CustomResourceDefinition')
    definitions.create(DEFINITION)
    resource = soon('the resource', lambda: levers(client))

    created = resource.create(lever('a', {}), namespace='default')
    assert created.spec.length == 7, created
    version = created.metadata.resourceVersion
    one = lever('a', {'ends': [{'side': 'left', 'load': 1}]})
    other = lever('a', {'ends': [{'side': 'right', 'load': 2}]})
    resource.server_side_apply(one, name='a', namespace='default', field_manager='one')
    both = resource.server_side_apply(other, name='a', namespace='default', field_manager='other')
    assert [end.side for end in both.spec.ends] == ['left', 'right'], both
    try:
        taken = lever('a', {'ends': [{'side': 'left', 'load': 9}]})
        resource.server_side_apply(taken, name='a', namespace='default', field_manager='other')
        sys.exit("another's field was taken")
    except ConflictError:
        pass
    resource.status.patch(
        {'status': {'angle': 30}}, name='a', namespace='default', content_type='application/merge-patch+json'
    )
    assert resource.get(name='a', namespace='default').status.angle == 30
    assert [item.metadata.name for item in resource.get(namespace='default').items] == ['a']

    resource.delete(name='a', namespace='default')
    seen = []
    for event in resource.watch(namespace='default', resource_version=version, timeout=PATIENCE_SECONDS):
        seen.append(event['type'])
        if event['type'] == 'DELETED':
            break
    assert seen == ['MODIFIED', 'MODIFIED', 'MODIFIED', 'DELETED'], seen
    definitions.delete(name='levers.example.com')
    soon('the end of the resource', lambda: None if levers(client) else True)
    try:
        definitions.get(name='levers.example.com')
        sys.exit('the definition is still there')
    except NotFoundError:
        print('done')


if __name__ == '__main__':
    main()
