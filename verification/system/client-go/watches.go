package main

import (
	"context"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// watches: a retry watcher goes on through the end of its connections, bookmarks come, and an old version is refused.
func watches(ctx context.Context, w *world) error {
	const namespace = "watches"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	for _, run := range []func(context.Context, *world, string) error{retried, bookmarked, initial, ancient} {
		if err := run(ctx, w, namespace); err != nil {
			return err
		}
	}
	return w.admin.typed.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{})
}

// retried kills the server between the events of a watch that client-go begins again.
func retried(ctx context.Context, w *world, namespace string) error {
	maps := w.admin.typed.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for number := range rounds {
		name := fmt.Sprintf("retried-%d", number)
		if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
			return err
		}
		if number%4 == 1 {
			if err := w.restart(ctx); err != nil {
				return err
			}
		}
		event, err := next(ctx, watcher)
		if err != nil {
			return err
		}
		if object, ok := event.Object.(*core.ConfigMap); !ok || event.Type != watch.Added || object.Name != name {
			return fmt.Errorf("after %s came %v of %v", name, event.Type, event.Object)
		}
	}
	shown("a retry watcher got every event once though the server was killed in between")
	return nil
}

func next(ctx context.Context, watcher watch.Interface) (watch.Event, error) {
	select {
	case event, open := <-watcher.ResultChan():
		if !open {
			return event, fmt.Errorf("the watch has ended")
		}
		return event, nil
	case <-time.After(patience):
		return watch.Event{}, fmt.Errorf("no event within %s", patience)
	case <-ctx.Done():
		return watch.Event{}, ctx.Err()
	}
}

// bookmarked ends a watch after a time, before which its last bookmark comes.
func bookmarked(ctx context.Context, w *world, namespace string) error {
	seconds := int64(5)
	watcher, err := w.admin.typed.CoreV1().Secrets(namespace).Watch(ctx, meta.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	event, err := next(ctx, watcher)
	if err != nil {
		return err
	}
	if event.Type != watch.Bookmark || event.Object.(*core.Secret).ResourceVersion == "" {
		return fmt.Errorf("not a bookmark but %v", event)
	}
	shown("a watch of nothing got its bookmark before it ended")
	return nil
}

// initial asks a watch for the state, typed and of metadata, until the bookmark that says it was all.
func initial(ctx context.Context, w *world, namespace string) error {
	send := true
	options := meta.ListOptions{AllowWatchBookmarks: true, SendInitialEvents: &send, ResourceVersionMatch: meta.ResourceVersionMatchNotOlderThan}
	typed, err := w.admin.typed.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	partial, err := w.admin.metadata.Resource(core.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Watch(ctx, options)
	if err != nil {
		typed.Stop()
		return err
	}
	for _, watcher := range []watch.Interface{typed, partial} {
		defer watcher.Stop()
		for added := 0; ; added++ {
			event, err := next(ctx, watcher)
			if err != nil {
				return err
			}
			if event.Type == watch.Added {
				continue
			}
			if event.Type != watch.Bookmark || !initialEnd(event.Object) || added != rounds+1 {
				return fmt.Errorf("after %d objects came %v", added, event)
			}
			break
		}
	}
	shown("watches told their state and then that it was all")
	return nil
}

func initialEnd(object runtime.Object) bool {
	marked, ok := object.(meta.Object)
	return ok && marked.GetAnnotations()[meta.InitialEventsAnnotationKey] == "true"
}

// ancient asks for a version that nobody has.
func ancient(ctx context.Context, w *world, namespace string) error {
	err := w.admin.typed.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").
		Param("resourceVersion", "999999999").MaxRetries(0).Do(ctx).Error()
	if !errors.IsTimeout(err) || !errors.HasStatusCause(err, meta.CauseTypeResourceVersionTooLarge) {
		return fmt.Errorf("a version of the future: %v", err)
	}
	shown("a list of the future was told to come again")
	return nil
}
