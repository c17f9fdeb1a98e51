"""A valid object of each kind that kube-apiserver serves in a stable version, for scripts that compare servers.

Each is what a user would write, without metadata. Python's standard library is enough.
"""

LABELS = {'app': 'a'}
CONTAINER = {'name': 'c', 'image': 'i'}
POD = {'metadata': {'labels': LABELS}, 'spec': {'containers': [CONTAINER]}}
SELECTOR = {'matchLabels': LABELS}
JOB = {'template': {'spec': {'containers': [CONTAINER], 'restartPolicy': 'Never'}}}
VOLUME_CLAIM = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}
RULES = [{'apiGroups': [''], 'apiVersions': ['v1'], 'operations': ['CREATE'], 'resources': ['pods']}]
WEBHOOK = {
    'name': 'w.example.com',
    'clientConfig': {'url': 'https://example.com/w'},
    'rules': [{**RULES[0], 'resources': ['nothings']}],
    'sideEffects': 'None',
    'admissionReviewVersions': ['v1'],
    'failurePolicy': 'Ignore',
}
NOTHINGS = {'resourceRules': [{**RULES[0], 'resources': ['nothings']}]}
ROLE = {'rules': [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get']}]}
SUBJECTS = [{'kind': 'User', 'name': 'u', 'apiGroup': 'rbac.authorization.k8s.io'}]
REFERENCE = {'apiGroup': 'rbac.authorization.k8s.io', 'name': 'r'}
EVENT = {
    'reason': 'r',
    'type': 'Normal',
    'action': 'a',
    'reportingController': 'example.com/c',
    'reportingInstance': 'i',
    'eventTime': '2020-01-01T00:00:00.000000Z',
}
DEVICES = {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'c.example.com'}}]}}
DEFINITION = {
    'group': 'verbs.example.com',
    'scope': 'Namespaced',
    'names': {'plural': 'things', 'kind': 'Thing'},
    'versions': [
        {
            'name': 'v1',
            'served': True,
            'storage': True,
            'schema': {
                'openAPIV3Schema': {
                    'type': 'object',
                    'properties': {
                        'spec': {
                            'type': 'object',
                            'properties': {
                                'size': {'type': 'integer', 'minimum': 1},
                                'color': {'type': 'string', 'default': 'red'},
                            },
                        },
                        'status': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True},
                    },
                }
            },
            'subresources': {
                'status': {},
                'scale': {'specReplicasPath': '.spec.size', 'statusReplicasPath': '.status.size'},
            },
            'additionalPrinterColumns': [{'name': 'Size', 'type': 'integer', 'jsonPath': '.spec.size'}],
        }
    ],
}

# By kind. Where a kind has several versions, by version and kind.
OBJECTS = {
    'ConfigMap': {'data': {'k': 'v'}, 'binaryData': {'b': 'AAEC'}},
    'Endpoints': {'subsets': [{'addresses': [{'ip': '10.1.0.1'}], 'ports': [{'port': 80}]}]},
    'v1/Event': {
        'involvedObject': {'kind': 'Pod', 'namespace': 'verbs', 'name': 'p'},
        'reason': 'r',
        'message': 'm',
        'type': 'Normal',
    },
    'events.k8s.io/v1/Event': {**EVENT, 'regarding': {'kind': 'Pod', 'namespace': 'verbs', 'name': 'p'}, 'note': 'n'},
    'LimitRange': {'spec': {'limits': [{'type': 'Container', 'max': {'cpu': '2'}, 'default': {'cpu': '1'}}]}},
    'Namespace': {},
    'Node': {'spec': {'podCIDR': '10.2.0.0/24', 'taints': [{'key': 'k', 'value': 'v', 'effect': 'NoSchedule'}]}},
    'PersistentVolumeClaim': {'spec': VOLUME_CLAIM},
    'PersistentVolume': {
        'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadWriteOnce'], 'hostPath': {'path': '/tmp/x'}}
    },
    'Pod': {
        'spec': {'containers': [{**CONTAINER, 'resources': {'requests': {'cpu': '1'}}}], 'nodeSelector': {'a': 'b'}}
    },
    'PodTemplate': {'template': POD},
    'ReplicationController': {'spec': {'replicas': 1, 'selector': LABELS, 'template': POD}},
    'ResourceQuota': {'spec': {'hard': {'pods': '10', 'requests.cpu': '4'}}},
    'Secret': {'type': 'Opaque', 'data': {'k': 'dg=='}, 'stringData': {'s': 't'}},
    'ServiceAccount': {'secrets': [{'name': 's'}], 'automountServiceAccountToken': False},
    'Service': {'spec': {'selector': LABELS, 'ports': [{'name': 'p', 'port': 80, 'targetPort': 8080}]}},
    'ControllerRevision': {'revision': 1, 'data': {'a': {'b': 1}}},
    'DaemonSet': {'spec': {'selector': SELECTOR, 'template': POD}},
    'Deployment': {'spec': {'replicas': 1, 'selector': SELECTOR, 'template': POD}},
    'ReplicaSet': {'spec': {'replicas': 1, 'selector': SELECTOR, 'template': POD}},
    'StatefulSet': {
        'spec': {
            'replicas': 1,
            'serviceName': 's',
            'selector': SELECTOR,
            'template': POD,
            'volumeClaimTemplates': [{'metadata': {'name': 'c'}, 'spec': VOLUME_CLAIM}],
        }
    },
    'CronJob': {'spec': {'schedule': '* * * * *', 'jobTemplate': {'spec': JOB}}},
    'Job': {'spec': JOB},
    'autoscaling/v1/HorizontalPodAutoscaler': {
        'spec': {
            'scaleTargetRef': {'kind': 'Deployment', 'name': 'd', 'apiVersion': 'apps/v1'},
            'maxReplicas': 3,
            'targetCPUUtilizationPercentage': 50,
        }
    },
    'autoscaling/v2/HorizontalPodAutoscaler': {
        'spec': {
            'scaleTargetRef': {'kind': 'Deployment', 'name': 'd', 'apiVersion': 'apps/v1'},
            'minReplicas': 1,
            'maxReplicas': 3,
            'metrics': [
                {
                    'type': 'Resource',
                    'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 50}},
                }
            ],
            'behavior': {'scaleDown': {'policies': [{'type': 'Percent', 'value': 100, 'periodSeconds': 15}]}},
        }
    },
    'PodDisruptionBudget': {'spec': {'minAvailable': 1, 'selector': SELECTOR}},
    'Ingress': {
        'spec': {
            'rules': [
                {
                    'host': 'h.example.com',
                    'http': {
                        'paths': [
                            {
                                'path': '/',
                                'pathType': 'Prefix',
                                'backend': {'service': {'name': 's', 'port': {'number': 80}}},
                            }
                        ]
                    },
                }
            ]
        }
    },
    'IngressClass': {'spec': {'controller': 'example.com/c'}},
    'NetworkPolicy': {
        'spec': {
            'podSelector': SELECTOR,
            'ingress': [
                {
                    'from': [{'ipBlock': {'cidr': '10.0.0.0/8', 'except': ['10.1.0.0/16']}}],
                    'ports': [{'port': 80, 'endPort': 90}],
                }
            ],
        }
    },
    'IPAddress': {'spec': {'parentRef': {'resource': 'services', 'namespace': 'verbs', 'name': 's'}}},
    'ServiceCIDR': {'spec': {'cidrs': ['10.9.0.0/24']}},
    'Role': ROLE,
    'ClusterRole': ROLE,
    'RoleBinding': {'subjects': SUBJECTS, 'roleRef': {'kind': 'Role', **REFERENCE}},
    'ClusterRoleBinding': {'subjects': SUBJECTS, 'roleRef': {'kind': 'ClusterRole', **REFERENCE}},
    'PriorityClass': {'value': 5, 'description': 'd'},
    'StorageClass': {'provisioner': 'example.com/p', 'parameters': {'a': 'b'}},
    'VolumeAttachment': {'spec': {'attacher': 'example.com', 'nodeName': 'n', 'source': {'persistentVolumeName': 'v'}}},
    'CSIDriver': {'spec': {'attachRequired': True}},
    'CSINode': {'spec': {'drivers': [{'name': 'd.example.com', 'nodeID': 'n', 'topologyKeys': ['k']}]}},
    'CSIStorageCapacity': {'storageClassName': 's', 'capacity': '1Gi', 'nodeTopology': SELECTOR},
    'VolumeAttributesClass': {'driverName': 'd.example.com', 'parameters': {'a': 'b'}},
    'Lease': {'spec': {'holderIdentity': 'h', 'leaseDurationSeconds': 10, 'renewTime': '2020-01-01T00:00:00.000000Z'}},
    'EndpointSlice': {
        'addressType': 'IPv4',
        'endpoints': [{'addresses': ['10.1.0.1'], 'conditions': {'ready': True}}],
        'ports': [{'name': 'p', 'port': 80}],
    },
    'RuntimeClass': {'handler': 'h', 'overhead': {'podFixed': {'cpu': '1'}}},
    'CertificateSigningRequest': {'spec': {'request': None, 'signerName': 'example.com/s', 'usages': ['client auth']}},
    'MutatingWebhookConfiguration': {'webhooks': [WEBHOOK]},
    'ValidatingWebhookConfiguration': {'webhooks': [WEBHOOK]},
    'ValidatingAdmissionPolicy': {'spec': {'matchConstraints': NOTHINGS, 'validations': [{'expression': 'true'}]}},
    'ValidatingAdmissionPolicyBinding': {'spec': {'policyName': 'p', 'validationActions': ['Deny']}},
    'MutatingAdmissionPolicy': {
        'spec': {
            'matchConstraints': NOTHINGS,
            'reinvocationPolicy': 'Never',
            'mutations': [{'patchType': 'ApplyConfiguration', 'applyConfiguration': {'expression': 'Object{}'}}],
        }
    },
    'MutatingAdmissionPolicyBinding': {'spec': {'policyName': 'p'}},
    'CustomResourceDefinition': {'spec': DEFINITION},
    'APIService': {
        'spec': {'group': 'local.example.com', 'version': 'v1', 'groupPriorityMinimum': 1, 'versionPriority': 1}
    },
    'FlowSchema': {'spec': {'priorityLevelConfiguration': {'name': 'l'}, 'matchingPrecedence': 500}},
    'PriorityLevelConfiguration': {
        'spec': {'type': 'Limited', 'limited': {'nominalConcurrencyShares': 5, 'limitResponse': {'type': 'Reject'}}}
    },
    'DeviceClass': {'spec': {'selectors': [{'cel': {'expression': 'true'}}]}},
    'ResourceClaim': {'spec': DEVICES},
    'ResourceClaimTemplate': {'spec': {'spec': DEVICES}},
    'ResourceSlice': {
        'spec': {
            'driver': 'd.example.com',
            'nodeName': 'n',
            'pool': {'name': 'p', 'resourceSliceCount': 1},
            'devices': [{'name': 'd'}],
        }
    },
}
# The names of objects that can have no other.
NAMES = {
    'IPAddress': '10.0.0.77',
    'CustomResourceDefinition': 'things.verbs.example.com',
    'APIService': 'v1.local.example.com',
}
