package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

type following struct {
	name    string
	informs cache.SharedIndexInformer
}

// informersSync starts informers on everything that can be followed, typed, of metadata and untyped, and waits until each has its state.
func informersSync(ctx context.Context, w *world) error {
	manager, err := w.user("system:kube-controller-manager")
	if err != nil {
		return err
	}
	resources, err := deletable(manager.typed.Discovery())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	typed := informers.NewSharedInformerFactory(manager.typed, 0)
	partial := metadatainformer.NewSharedInformerFactory(manager.metadata, 0)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(manager.dynamic, 0)
	var all []following
	for _, resource := range resources {
		informer, err := typed.ForResource(resource)
		if err == nil {
			all = append(all, following{"typed " + readable(resource), informer.Informer()})
		} else if !strings.HasPrefix(resource.Group, "api") {
			return fmt.Errorf("client-go has no informer for %s: %w", resource, err)
		}
		all = append(all, following{"metadata of " + readable(resource), partial.ForResource(resource).Informer()},
			following{"untyped " + readable(resource), untyped.ForResource(resource).Informer()})
	}
	for _, one := range all {
		name := one.name
		if err := one.informs.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			w.faults.report("the informer of "+name, err)
		}); err != nil {
			return err
		}
	}
	began := time.Now()
	typed.Start(ctx.Done())
	partial.Start(ctx.Done())
	untyped.Start(ctx.Done())
	err = eventually(ctx, "informers have their state", func(context.Context) error {
		var missing []string
		for _, one := range all {
			if !one.informs.HasSynced() {
				missing = append(missing, one.name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("not those of %s", strings.Join(missing, ", "))
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown("%d informers of %d resources, typed, of metadata and untyped, have their state after %.1f s", len(all), len(resources), time.Since(began).Seconds())
	return nil
}

func readable(resource schema.GroupVersionResource) string {
	return strings.TrimPrefix(resource.Group+"/"+resource.Version+" "+resource.Resource, "/")
}
