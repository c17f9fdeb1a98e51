package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collection: the three ways in which a deployment goes, an owner that never was, and one of two owners that goes.
func collection(ctx context.Context, w *world) error {
	const namespace = "collection"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	for _, run := range []func(context.Context, *world, string) error{inBackground, inForeground, orphaned, adopted, absent, shared} {
		if err := run(ctx, w, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) deployed(ctx context.Context, namespace, name string) error {
	if _, err := w.admin.typed.CoreV1().Services(namespace).Create(ctx, newService(name), meta.CreateOptions{}); err != nil {
		return err
	}
	if _, err := w.admin.typed.AppsV1().Deployments(namespace).Create(ctx, newDeployment(name, 2, "web:1"), meta.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, name+" runs", w.complete(namespace, name, 2))
}

// left counts replica sets and pods of a deployment.
func (w *world) left(ctx context.Context, namespace, name string) (sets, pods int, err error) {
	selection := meta.ListOptions{LabelSelector: "app=" + name}
	setList, err := w.admin.typed.AppsV1().ReplicaSets(namespace).List(ctx, selection)
	if err != nil {
		return 0, 0, err
	}
	podList, err := w.admin.typed.CoreV1().Pods(namespace).List(ctx, selection)
	if err != nil {
		return 0, 0, err
	}
	return len(setList.Items), len(podList.Items), nil
}

func (w *world) nothingLeft(namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		sets, pods, err := w.left(ctx, namespace, name)
		if err == nil && sets+pods > 0 {
			err = fmt.Errorf("%d replica sets and %d pods", sets, pods)
		}
		return err
	}
}

func inBackground(ctx context.Context, w *world, namespace string) error {
	if err := w.deployed(ctx, namespace, "background"); err != nil {
		return err
	}
	policy := meta.DeletePropagationBackground
	deployments := w.admin.typed.AppsV1().Deployments(namespace)
	if err := deployments.Delete(ctx, "background", meta.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return err
	}
	if _, err := deployments.Get(ctx, "background", meta.GetOptions{}); !errors.IsNotFound(err) {
		return fmt.Errorf("a deployment that is deleted in the background is still there: %v", err)
	}
	if err := eventually(ctx, "what it owned is collected", w.nothingLeft(namespace, "background")); err != nil {
		return err
	}
	shown("deleted in the background, a deployment went at once and what it owned after it")
	return nil
}

func inForeground(ctx context.Context, w *world, namespace string) error {
	if err := w.deployed(ctx, namespace, "foreground"); err != nil {
		return err
	}
	policy := meta.DeletePropagationForeground
	deployments := w.admin.typed.AppsV1().Deployments(namespace)
	if err := deployments.Delete(ctx, "foreground", meta.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return err
	}
	err := eventually(ctx, "the deployment goes", func(ctx context.Context) error {
		// What is read after the owner went must be without what blocked it.
		_, err := deployments.Get(ctx, "foreground", meta.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is still there")
		} else if !errors.IsNotFound(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.nothingLeft(namespace, "foreground")(ctx); err != nil {
		return fmt.Errorf("the owner went before what blocked it: %w", err)
	}
	shown("deleted in the foreground, a deployment went after what it owned")
	return nil
}

func orphaned(ctx context.Context, w *world, namespace string) error {
	if err := w.deployed(ctx, namespace, "orphan"); err != nil {
		return err
	}
	policy := meta.DeletePropagationOrphan
	deployments := w.admin.typed.AppsV1().Deployments(namespace)
	if err := deployments.Delete(ctx, "orphan", meta.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return err
	}
	if err := eventually(ctx, "the deployment goes", func(ctx context.Context) error {
		if _, err := deployments.Get(ctx, "orphan", meta.GetOptions{}); !errors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	list, err := w.admin.typed.AppsV1().ReplicaSets(namespace).List(ctx, meta.ListOptions{LabelSelector: "app=orphan"})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || len(list.Items[0].OwnerReferences) != 0 {
		return fmt.Errorf("orphans are %v", list.Items)
	}
	shown("orphaned, a replica set stayed and has no owner")
	return nil
}

// adopted makes the deployment again, which takes the orphan.
func adopted(ctx context.Context, w *world, namespace string) error {
	before, err := w.admin.typed.AppsV1().ReplicaSets(namespace).List(ctx, meta.ListOptions{LabelSelector: "app=orphan"})
	if err != nil {
		return err
	}
	made, err := w.admin.typed.AppsV1().Deployments(namespace).Create(ctx, newDeployment("orphan", 2, "web:1"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	if err := eventually(ctx, "the orphan is adopted", func(ctx context.Context) error {
		after, err := w.admin.typed.AppsV1().ReplicaSets(namespace).List(ctx, meta.ListOptions{LabelSelector: "app=orphan"})
		if err != nil {
			return err
		}
		if len(after.Items) != 1 || after.Items[0].UID != before.Items[0].UID || !meta.IsControlledBy(&after.Items[0], made) {
			return fmt.Errorf("%d replica sets, the first of %v", len(after.Items), after.Items[0].OwnerReferences)
		}
		return w.complete(namespace, "orphan", 2)(ctx)
	}); err != nil {
		return err
	}
	shown("a deployment made anew adopted it")
	return nil
}

func absent(ctx context.Context, w *world, namespace string) error {
	maps := w.admin.typed.CoreV1().ConfigMaps(namespace)
	child := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "lost", OwnerReferences: []meta.OwnerReference{
		{APIVersion: "v1", Kind: "Secret", Name: "never", UID: types.UID("c0ffee00-0000-4000-8000-000000000000")}}}}
	if _, err := maps.Create(ctx, child, meta.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "an object of an absent owner is collected", func(ctx context.Context) error {
		if _, err := maps.Get(ctx, "lost", meta.GetOptions{}); !errors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	}); err != nil {
		return err
	}
	shown("an object whose owner never was went")
	return nil
}

// shared has two owners, of which one goes.
func shared(ctx context.Context, w *world, namespace string) error {
	maps := w.admin.typed.CoreV1().ConfigMaps(namespace)
	child := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "shared"}}
	for _, name := range []string{"first", "second"} {
		owner, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
		if err != nil {
			return err
		}
		child.OwnerReferences = append(child.OwnerReferences, meta.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID})
	}
	if _, err := maps.Create(ctx, child, meta.CreateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "first", meta.DeleteOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "the owner that is gone is taken off", func(ctx context.Context) error {
		present, err := maps.Get(ctx, "shared", meta.GetOptions{})
		if err != nil {
			return err
		}
		if len(present.OwnerReferences) != 1 || present.OwnerReferences[0].Name != "second" {
			return fmt.Errorf("owners are %v", present.OwnerReferences)
		}
		return nil
	}); err != nil {
		return err
	}
	shown("an object of two owners lost the one that went and stayed")
	return nil
}
