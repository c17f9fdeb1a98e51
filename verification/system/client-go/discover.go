package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// deletable are the resources that the garbage collector follows: those of the preferred versions that can be deleted, listed and watched.
func deletable(client discovery.DiscoveryInterface) ([]schema.GroupVersionResource, error) {
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	wanted := discovery.SupportsAllVerbs{Verbs: []string{"delete", "list", "watch"}}
	found, err := discovery.GroupVersionResources(discovery.FilteredBy(wanted, lists))
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupVersionResource
	for resource := range found {
		resources = append(resources, resource)
	}
	return resources, nil
}
