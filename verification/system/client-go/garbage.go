package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
)

// garbage deletes what nobody owns any more, in the three ways in which owners go.
type garbage struct {
	clients *clients
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	graph   *graph
	loop    *loop
}

func startGarbage(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "generic-garbage-collector")
	if err != nil {
		return err
	}
	c := &garbage{clients: clients}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(clients.typed.Discovery()))
	c.graph = &graph{collector: c, informers: map[schema.GroupVersionResource]*monitor{}}
	c.loop = m.loop("generic-garbage-collector", c.sync)
	m.others = append(m.others, c.graph.keep)
	m.garbage = c
	return nil
}

func (c *garbage) sync(ctx context.Context, key string) error {
	item, known := c.graph.find(types.UID(key))
	if !known {
		return nil
	}
	if item.object.DeletionTimestamp != nil {
		switch {
		case finalizedBy(item.object, meta.FinalizerOrphanDependents):
			return c.orphan(ctx, item)
		case finalizedBy(item.object, meta.FinalizerDeleteDependents):
			return c.foreground(ctx, item)
		}
		return nil
	}
	if len(item.object.OwnerReferences) == 0 {
		return nil
	}
	return c.judge(ctx, item)
}

// judge deletes an object whose owners are all gone or wait for it to go, and takes such owners off one that has others.
func (c *garbage) judge(ctx context.Context, item node) error {
	live, err := c.client(item).Get(ctx, item.object.Name, meta.GetOptions{})
	if errors.IsNotFound(err) || err == nil && (live.UID != item.object.UID || len(live.OwnerReferences) == 0) {
		return nil
	} else if err != nil {
		return err
	}
	var solid, gone, waiting []types.UID
	for _, reference := range live.OwnerReferences {
		owner, err := c.owner(ctx, live.Namespace, reference)
		switch {
		case err != nil:
			return err
		case owner == nil:
			gone = append(gone, reference.UID)
		case owner.DeletionTimestamp != nil && finalizedBy(owner, meta.FinalizerDeleteDependents):
			waiting = append(waiting, reference.UID)
		default:
			solid = append(solid, reference.UID)
		}
	}
	if len(solid) > 0 {
		if lost := append(gone, waiting...); len(lost) > 0 {
			return c.patch(ctx, item, types.StrategicMergePatchType, withoutOwners(live.UID, lost...))
		}
		return nil
	}
	policy := meta.DeletePropagationBackground
	if len(waiting) > 0 && len(c.graph.dependents(live.UID)) > 0 || finalizedBy(live, meta.FinalizerDeleteDependents) {
		policy = meta.DeletePropagationForeground
	} else if finalizedBy(live, meta.FinalizerOrphanDependents) {
		policy = meta.DeletePropagationOrphan
	}
	preconditions := &meta.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
	err = c.client(item).Delete(ctx, live.Name, meta.DeleteOptions{PropagationPolicy: &policy, Preconditions: preconditions})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// owner is the object that a reference means, or nothing: another object of the same name is not it.
func (c *garbage) owner(ctx context.Context, namespace string, reference meta.OwnerReference) (*meta.PartialObjectMetadata, error) {
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return nil, err
	}
	mapping, err := c.mapper.RESTMapping(schema.GroupKind{Group: group.Group, Kind: reference.Kind}, group.Version)
	if err != nil {
		c.mapper.Reset()
		return nil, err
	}
	var client metadata.ResourceInterface = c.clients.metadata.Resource(mapping.Resource)
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		client = c.clients.metadata.Resource(mapping.Resource).Namespace(namespace)
	}
	owner, err := client.Get(ctx, reference.Name, meta.GetOptions{})
	if errors.IsNotFound(err) || err == nil && owner.UID != reference.UID {
		return nil, nil
	}
	return owner, err
}

// orphan takes the owner off its dependents and lets it go.
func (c *garbage) orphan(ctx context.Context, item node) error {
	for _, dependent := range c.graph.dependents(item.object.UID) {
		err := c.patch(ctx, dependent, types.StrategicMergePatchType, withoutOwners(dependent.object.UID, item.object.UID))
		if err != nil && !errors.IsNotFound(err) {
			return err
		}
	}
	return c.unfinalize(ctx, item, meta.FinalizerOrphanDependents)
}

// foreground waits for the dependents that block, which are deleted since their owner waits, and lets the owner go.
func (c *garbage) foreground(ctx context.Context, item node) error {
	blocked := false
	for _, dependent := range c.graph.dependents(item.object.UID) {
		for _, reference := range dependent.object.OwnerReferences {
			if reference.UID == item.object.UID && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion {
				blocked = true
			}
		}
		c.loop.queue.Add(string(dependent.object.UID))
	}
	if blocked {
		return nil
	}
	return c.unfinalize(ctx, item, meta.FinalizerDeleteDependents)
}

func (c *garbage) unfinalize(ctx context.Context, item node, finalizer string) error {
	live, err := c.client(item).Get(ctx, item.object.Name, meta.GetOptions{})
	if errors.IsNotFound(err) || err == nil && live.UID != item.object.UID {
		return nil
	} else if err != nil {
		return err
	}
	kept := []string{}
	for _, one := range live.Finalizers {
		if one != finalizer {
			kept = append(kept, one)
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": live.ResourceVersion, "finalizers": kept}})
	if err != nil {
		return err
	}
	err = c.patch(ctx, item, types.MergePatchType, body)
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// patch goes by the other kind of merge where the resource knows no strategic one.
func (c *garbage) patch(ctx context.Context, item node, kind types.PatchType, body []byte) error {
	_, err := c.client(item).Patch(ctx, item.object.Name, kind, body, meta.PatchOptions{})
	if !errors.IsUnsupportedMediaType(err) {
		return err
	}
	live, err := c.client(item).Get(ctx, item.object.Name, meta.GetOptions{})
	if err != nil {
		return err
	}
	var unwanted meta.PartialObjectMetadata
	if err := json.Unmarshal(body, &unwanted); err != nil {
		return err
	}
	kept := []meta.OwnerReference{}
	for _, reference := range live.OwnerReferences {
		if !references(unwanted.OwnerReferences, reference.UID) {
			kept = append(kept, reference)
		}
	}
	body, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion, "ownerReferences": kept}})
	if err != nil {
		return err
	}
	_, err = c.client(item).Patch(ctx, item.object.Name, types.MergePatchType, body, meta.PatchOptions{})
	return err
}

func (c *garbage) client(item node) metadata.ResourceInterface {
	if item.object.Namespace == "" {
		return c.clients.metadata.Resource(item.resource)
	}
	return c.clients.metadata.Resource(item.resource).Namespace(item.object.Namespace)
}

func references(all []meta.OwnerReference, uid types.UID) bool {
	for _, one := range all {
		if one.UID == uid {
			return true
		}
	}
	return false
}

func finalizedBy(object meta.Object, finalizer string) bool {
	for _, one := range object.GetFinalizers() {
		if one == finalizer {
			return true
		}
	}
	return false
}
