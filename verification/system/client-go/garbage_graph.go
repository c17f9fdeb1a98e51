package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

const (
	byUID   = "uid"
	byOwner = "owner"
	resync  = time.Second
)

// graph follows the metadata of everything that can be deleted, and knows who owns what.
type graph struct {
	collector *garbage
	mutex     sync.RWMutex
	informers map[schema.GroupVersionResource]*monitor
}

type monitor struct {
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc
}

type node struct {
	resource schema.GroupVersionResource
	object   *meta.PartialObjectMetadata
}

// keep follows what discovery names, and what it names later, as definitions come and go.
func (g *graph) keep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := g.match(ctx); err != nil && ctx.Err() == nil {
			g.collector.loop.faults.report("the garbage collector's discovery", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(resync):
		}
	}
}

func (g *graph) match(ctx context.Context) error {
	resources, err := deletable(g.collector.clients.typed.Discovery())
	if err != nil {
		return err
	}
	wanted := map[schema.GroupVersionResource]bool{}
	for _, resource := range resources {
		// Their owners and dependents are few, and they come in floods.
		wanted[resource] = resource.Resource != "events"
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for resource, monitor := range g.informers {
		if !wanted[resource] {
			monitor.cancel()
			delete(g.informers, resource)
		}
	}
	for resource, follow := range wanted {
		if _, present := g.informers[resource]; follow && !present {
			if err := g.follow(ctx, resource); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *graph) follow(ctx context.Context, resource schema.GroupVersionResource) error {
	indexers := cache.Indexers{
		byUID: func(object any) ([]string, error) { return []string{string(object.(meta.Object).GetUID())}, nil },
		byOwner: func(object any) ([]string, error) {
			var owners []string
			for _, owner := range object.(meta.Object).GetOwnerReferences() {
				owners = append(owners, string(owner.UID))
			}
			return owners, nil
		},
	}
	informer := metadatainformer.NewFilteredMetadataInformer(g.collector.clients.metadata, resource, meta.NamespaceAll, 0, indexers, nil).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			g.collector.loop.faults.report("the garbage collector's informer of "+resource.String(), err)
		}
	}); err != nil {
		return err
	}
	if err := g.collector.loop.follow(informer, func(object any) []string { return g.concerned(resource, object) }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	g.informers[resource] = &monitor{informer, cancel}
	go informer.RunWithContext(ctx)
	return nil
}

// concerned are an object that changed, whom it owns and by whom it is owned.
func (g *graph) concerned(_ schema.GroupVersionResource, object any) []string {
	changed := object.(*meta.PartialObjectMetadata)
	keys := []string{string(changed.UID)}
	for _, owner := range changed.OwnerReferences {
		keys = append(keys, string(owner.UID))
	}
	// The monitor that tells this may be one that is just being added, so the lock is not ours to wait for.
	go func() {
		for _, dependent := range g.dependents(changed.UID) {
			g.collector.loop.queue.Add(string(dependent.object.UID))
		}
	}()
	return keys
}

func (g *graph) look(index string, uid types.UID) []node {
	g.mutex.RLock()
	defer g.mutex.RUnlock()
	var found []node
	for resource, monitor := range g.informers {
		objects, err := monitor.informer.GetIndexer().ByIndex(index, string(uid))
		if err != nil {
			panic(err) // Every monitor has both indices.
		}
		for _, object := range objects {
			found = append(found, node{resource, object.(*meta.PartialObjectMetadata)})
		}
	}
	return found
}

func (g *graph) find(uid types.UID) (node, bool) {
	found := g.look(byUID, uid)
	if len(found) == 0 {
		return node{}, false
	}
	return found[0], true
}

func (g *graph) dependents(uid types.UID) []node { return g.look(byOwner, uid) }

// synced says which informers have no state yet.
func (g *graph) synced(context.Context) error {
	g.mutex.RLock()
	defer g.mutex.RUnlock()
	for resource, monitor := range g.informers {
		if !monitor.informer.HasSynced() {
			return fmt.Errorf("the garbage collector does not know %s", resource)
		}
	}
	if len(g.informers) == 0 {
		return fmt.Errorf("the garbage collector follows nothing")
	}
	return nil
}
