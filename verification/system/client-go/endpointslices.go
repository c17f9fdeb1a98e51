package main

import (
	"context"
	"sort"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

const managedBy = "endpointslice-controller.k8s.io"

// endpointSlices lists the pods behind each service, in one slice.
type endpointSlices struct {
	clients  *clients
	services corelisters.ServiceLister
	pods     corelisters.PodLister
	slices   discoverylisters.EndpointSliceLister
}

func startEndpointSlices(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "endpointslice-controller")
	if err != nil {
		return err
	}
	services, pods := m.informers.Core().V1().Services(), m.informers.Core().V1().Pods()
	slices := m.informers.Discovery().V1().EndpointSlices()
	c := &endpointSlices{clients: clients, services: services.Lister(), pods: pods.Lister(), slices: slices.Lister()}
	loop := m.loop("endpointslice-controller", c.sync)
	if err := loop.follow(services.Informer(), own); err != nil {
		return err
	}
	if err := loop.follow(pods.Informer(), c.selecting); err != nil {
		return err
	}
	return loop.follow(slices.Informer(), func(object any) []string {
		slice := object.(*discovery.EndpointSlice)
		if slice.Labels[discovery.LabelManagedBy] != managedBy {
			return nil
		}
		return []string{slice.Namespace + "/" + slice.Labels[discovery.LabelServiceName]}
	})
}

func (c *endpointSlices) selecting(object any) []string {
	pod := object.(*core.Pod)
	var keys []string
	all, _ := c.services.Services(pod.Namespace).List(labels.Everything())
	for _, service := range all {
		if len(service.Spec.Selector) > 0 && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			keys = append(keys, own(service)...)
		}
	}
	return keys
}

func (c *endpointSlices) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	service, err := c.services.Services(namespace).Get(name)
	if errors.IsNotFound(err) || err == nil && (len(service.Spec.Selector) == 0 || service.DeletionTimestamp != nil) {
		return nil
	} else if err != nil {
		return err
	}
	wanted, err := c.wanted(service)
	if err != nil {
		return err
	}
	selector := labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: name, discovery.LabelManagedBy: managedBy})
	present, err := c.slices.EndpointSlices(namespace).List(selector)
	if err != nil {
		return err
	}
	slices := c.clients.typed.DiscoveryV1().EndpointSlices(namespace)
	if len(present) == 0 {
		_, err := slices.Create(ctx, wanted, meta.CreateOptions{})
		if errors.HasStatusCause(err, core.NamespaceTerminatingCause) {
			return nil
		}
		return err
	}
	for _, extra := range present[1:] {
		if err := slices.Delete(ctx, extra.Name, meta.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
			return err
		}
	}
	if equality.Semantic.DeepEqual(present[0].Endpoints, wanted.Endpoints) && equality.Semantic.DeepEqual(present[0].Ports, wanted.Ports) {
		return nil
	}
	changed := present[0].DeepCopy()
	changed.Endpoints, changed.Ports = wanted.Endpoints, wanted.Ports
	_, err = slices.Update(ctx, changed, meta.UpdateOptions{})
	return err
}

func (c *endpointSlices) wanted(service *core.Service) (*discovery.EndpointSlice, error) {
	pods, err := c.pods.Pods(service.Namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	slice := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			GenerateName:    service.Name + "-",
			Labels:          map[string]string{discovery.LabelServiceName: service.Name, discovery.LabelManagedBy: managedBy},
			OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(service, core.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discovery.AddressTypeIPv4,
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		target := port.TargetPort.IntVal
		slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: &port.Name, Protocol: &port.Protocol, Port: &target})
	}
	for _, pod := range pods {
		if pod.Status.PodIP == "" {
			continue
		}
		terminating := pod.DeletionTimestamp != nil
		serving := podReady(pod)
		ready := serving && !terminating
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses:  []string{pod.Status.PodIP},
			Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
			TargetRef:  &core.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			NodeName:   &pod.Spec.NodeName,
		})
	}
	sort.Slice(slice.Endpoints, func(i, j int) bool { return slice.Endpoints[i].TargetRef.Name < slice.Endpoints[j].TargetRef.Name })
	return slice, nil
}
