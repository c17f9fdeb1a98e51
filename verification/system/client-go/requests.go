package main

import (
	"context"
	"fmt"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

const (
	writers = 8
	rounds  = 10
	objects = 25
	page    = 4
)

// requests: what client-go makes of conflicts, of lists in pages and of apply.
func requests(ctx context.Context, w *world) error {
	const namespace = "requests"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	for _, run := range []func(context.Context, *world, string) error{conflicts, pages, applied, deleted} {
		if err := run(ctx, w, namespace); err != nil {
			return err
		}
	}
	return w.admin.typed.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{})
}

// conflicts has writers count in one object, each by reading, adding and writing.
func conflicts(ctx context.Context, w *world, namespace string) error {
	maps := w.admin.typed.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "counter"}, Data: map[string]string{"n": ""}}, meta.CreateOptions{}); err != nil {
		return err
	}
	backoff := retry.DefaultRetry
	backoff.Steps = 200
	failures := make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range rounds {
				if err := retry.RetryOnConflict(backoff, func() error {
					object, err := maps.Get(ctx, "counter", meta.GetOptions{})
					if err != nil {
						return err
					}
					object.Data["n"] += "i"
					_, err = maps.Update(ctx, object, meta.UpdateOptions{})
					return err
				}); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return err
	}
	object, err := maps.Get(ctx, "counter", meta.GetOptions{})
	if err != nil {
		return err
	}
	if len(object.Data["n"]) != writers*rounds {
		return fmt.Errorf("%d writers counted to %d", writers, len(object.Data["n"]))
	}
	shown("%d writers that met conflicts counted to %d", writers, writers*rounds)
	return nil
}

// pages lists by a pager, whose pages are of one version though objects come while it reads.
func pages(ctx context.Context, w *world, namespace string) error {
	secrets := w.admin.typed.CoreV1().Secrets(namespace)
	make := func(name string) error {
		_, err := secrets.Create(ctx, &core.Secret{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
		return err
	}
	for number := range objects {
		if err := make(fmt.Sprintf("page-%02d", number)); err != nil {
			return err
		}
	}
	asked := 0
	lister := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		asked++
		if err := make(fmt.Sprintf("page-99-%02d", asked)); err != nil {
			return nil, err
		}
		return secrets.List(ctx, options)
	})
	lister.PageSize = page
	seen := map[string]bool{}
	if err := lister.EachListItem(ctx, meta.ListOptions{}, func(object runtime.Object) error {
		seen[object.(*core.Secret).Name] = true
		return nil
	}); err != nil {
		return err
	}
	// The object of the first request was there before the list was, and none of the others.
	if len(seen) != objects+1 || asked < objects/page {
		return fmt.Errorf("%d objects in %d pages", len(seen), asked)
	}
	shown("a list in %d pages showed one version", asked)
	return nil
}

// applied has two appliers, of which the second is refused what the first has.
func applied(ctx context.Context, w *world, namespace string) error {
	maps := w.admin.typed.CoreV1().ConfigMaps(namespace)
	want := func(value string) *applycore.ConfigMapApplyConfiguration {
		return applycore.ConfigMap("applied", namespace).WithData(map[string]string{"key": value})
	}
	if _, err := maps.Apply(ctx, want("one"), meta.ApplyOptions{FieldManager: "first"}); err != nil {
		return err
	}
	if _, err := maps.Apply(ctx, want("two"), meta.ApplyOptions{FieldManager: "second"}); !errors.IsConflict(err) {
		return fmt.Errorf("a field of another applier: %v", err)
	}
	object, err := maps.Apply(ctx, want("two"), meta.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return err
	}
	theirs, err := applycore.ExtractConfigMap(object, "second")
	if err != nil {
		return err
	}
	if theirs.Data["key"] != "two" {
		return fmt.Errorf("the second applier has %v", theirs.Data)
	}
	shown("appliers met in a conflict, and extracted what they have")
	return nil
}

// deleted asks with preconditions, for a try and by a selector.
func deleted(ctx context.Context, w *world, namespace string) error {
	secrets := w.admin.typed.CoreV1().Secrets(namespace)
	other := "c0ffee00-0000-4000-8000-000000000000"
	if err := secrets.Delete(ctx, "page-00", meta.DeleteOptions{Preconditions: meta.NewUIDPreconditions(other)}); !errors.IsConflict(err) {
		return fmt.Errorf("a deletion of another object: %v", err)
	}
	if err := secrets.Delete(ctx, "page-00", meta.DeleteOptions{DryRun: []string{meta.DryRunAll}}); err != nil {
		return err
	}
	if _, err := secrets.Get(ctx, "page-00", meta.GetOptions{}); err != nil {
		return err
	}
	if err := secrets.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{FieldSelector: "metadata.name=page-00"}); err != nil {
		return err
	}
	list, err := secrets.List(ctx, meta.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if list.Items[0].Name != "page-01" || list.RemainingItemCount == nil {
		return fmt.Errorf("the first of %v is %s", list.RemainingItemCount, list.Items[0].Name)
	}
	shown("deletions kept to preconditions, dry runs and selectors")
	return nil
}
