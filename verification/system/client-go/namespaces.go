package main

import (
	"context"
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// namespaces empties those that are being deleted and lets them go.
type namespaces struct {
	clients *clients
	all     corelisters.NamespaceLister
}

func startNamespaces(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "namespace-controller")
	if err != nil {
		return err
	}
	all := m.informers.Core().V1().Namespaces()
	c := &namespaces{clients: clients, all: all.Lister()}
	return m.loop("namespace-controller", c.sync).follow(all.Informer(), own)
}

// remaining is what makes a namespace be looked at again.
type remaining struct{ what []string }

func (r remaining) Error() string { return "there is still " + strings.Join(r.what, ", ") }

func (c *namespaces) sync(ctx context.Context, name string) error {
	namespace, err := c.all.Get(name)
	if errors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp == nil {
		return nil
	} else if err != nil {
		return err
	}
	client := c.clients.typed.CoreV1().Namespaces()
	namespace, err = client.Get(ctx, name, meta.GetOptions{})
	if errors.IsNotFound(err) || err == nil && len(namespace.Spec.Finalizers) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	if namespace.Status.Phase != core.NamespaceTerminating {
		namespace.Status.Phase = core.NamespaceTerminating
		if namespace, err = client.UpdateStatus(ctx, namespace, meta.UpdateOptions{}); err != nil {
			return err
		}
	}
	left, err := c.empty(ctx, name)
	if err != nil {
		return err
	}
	if err := c.tell(ctx, namespace, left); err != nil {
		return err
	}
	if len(left) > 0 {
		return remaining{left}
	}
	if namespace, err = client.Get(ctx, name, meta.GetOptions{}); err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	_, err = client.Finalize(ctx, namespace, meta.UpdateOptions{})
	return err
}

// empty deletes all that can be deleted, and says what is still there.
func (c *namespaces) empty(ctx context.Context, name string) ([]string, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.clients.typed.Discovery())
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete"}}, lists)
	verbs := map[schema.GroupVersionResource]meta.Verbs{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			verbs[group.WithResource(resource.Name)] = resource.Verbs
		}
	}
	var left []string
	for resource, able := range verbs {
		if !has(able, "list") {
			continue
		}
		items, err := c.collection(ctx, name, resource, able)
		if errors.IsNotFound(err) || errors.IsMethodNotSupported(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", resource, err)
		}
		if items > 0 {
			left = append(left, fmt.Sprintf("%d %s", items, readable(resource)))
		}
	}
	return left, nil
}

func (c *namespaces) collection(ctx context.Context, name string, resource schema.GroupVersionResource, able meta.Verbs) (int, error) {
	client := c.clients.metadata.Resource(resource).Namespace(name)
	background := meta.DeletePropagationBackground
	if has(able, "deletecollection") {
		if err := client.DeleteCollection(ctx, meta.DeleteOptions{PropagationPolicy: &background}, meta.ListOptions{}); err != nil {
			return 0, err
		}
	}
	list, err := client.List(ctx, meta.ListOptions{})
	if err != nil {
		return 0, err
	}
	if !has(able, "deletecollection") {
		for _, item := range list.Items {
			if err := client.Delete(ctx, item.Name, meta.DeleteOptions{PropagationPolicy: &background}); err != nil && !errors.IsNotFound(err) {
				return 0, err
			}
		}
	}
	return len(list.Items), nil
}

// tell writes into the status what is left.
func (c *namespaces) tell(ctx context.Context, namespace *core.Namespace, left []string) error {
	condition := core.NamespaceCondition{Type: core.NamespaceContentRemaining, Status: core.ConditionFalse, Reason: "ContentRemoved",
		Message: "All content successfully removed", LastTransitionTime: meta.Now()}
	if len(left) > 0 {
		condition.Status, condition.Reason, condition.Message = core.ConditionTrue, "SomeResourcesRemain", strings.Join(left, ", ")
	}
	for _, old := range namespace.Status.Conditions {
		if old.Type == condition.Type && old.Status == condition.Status {
			return nil
		}
	}
	changed := namespace.DeepCopy()
	changed.Status.Conditions = []core.NamespaceCondition{condition}
	_, err := c.clients.typed.CoreV1().Namespaces().UpdateStatus(ctx, changed, meta.UpdateOptions{})
	return err
}

func has(verbs meta.Verbs, wanted string) bool {
	for _, verb := range verbs {
		if verb == wanted {
			return true
		}
	}
	return false
}
