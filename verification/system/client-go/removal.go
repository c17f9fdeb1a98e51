package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// removal: namespaces with everything in them are emptied and go, and with the definition its resource.
func removal(ctx context.Context, w *world) error {
	const namespace = "removal"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	if err := w.deployed(ctx, namespace, "web"); err != nil {
		return err
	}
	if err := fill(ctx, w, namespace); err != nil {
		return err
	}
	names := []string{namespace, "workloads", "collection", "customs"}
	for _, name := range names {
		if err := w.admin.typed.CoreV1().Namespaces().Delete(ctx, name, meta.DeleteOptions{}); err != nil {
			return err
		}
	}
	// A second request finds it on its way.
	if err := w.admin.typed.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{}); err != nil && !errors.IsConflict(err) && !errors.IsNotFound(err) {
		return err
	}
	for _, name := range names {
		if err := eventually(ctx, name+" is emptied and goes", func(ctx context.Context) error {
			present, err := w.admin.typed.CoreV1().Namespaces().Get(ctx, name, meta.GetOptions{})
			if err == nil {
				return fmt.Errorf("it has %v", present.Status)
			} else if !errors.IsNotFound(err) {
				return err
			}
			return nil
		}); err != nil {
			return err
		}
	}
	shown("%d namespaces were emptied of all that discovery names, finalized and went", len(names))
	return undefined(ctx, w)
}

// fill puts objects of other kinds there.
func fill(ctx context.Context, w *world, namespace string) error {
	if _, err := w.admin.dynamic.Resource(widgets).Namespace(namespace).Create(ctx, widget("one"), meta.CreateOptions{}); err != nil {
		return err
	}
	role := &rbac.Role{ObjectMeta: meta.ObjectMeta{Name: "reader"}, Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	if _, err := w.admin.typed.RbacV1().Roles(namespace).Create(ctx, role, meta.CreateOptions{}); err != nil {
		return err
	}
	claim := &core.PersistentVolumeClaim{ObjectMeta: meta.ObjectMeta{Name: "data"}, Spec: core.PersistentVolumeClaimSpec{
		AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
		Resources:   core.VolumeResourceRequirements{Requests: core.ResourceList{core.ResourceStorage: quantity("1Gi")}}}}
	if _, err := w.admin.typed.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim, meta.CreateOptions{}); err != nil {
		return err
	}
	quota := &core.ResourceQuota{ObjectMeta: meta.ObjectMeta{Name: "limit"}, Spec: core.ResourceQuotaSpec{Hard: core.ResourceList{core.ResourcePods: quantity("10")}}}
	_, err := w.admin.typed.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, meta.CreateOptions{})
	return err
}

func undefined(ctx context.Context, w *world) error {
	if err := w.admin.dynamic.Resource(definitions).Delete(ctx, "widgets.example.com", meta.DeleteOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "discovery forgets the resource", func(context.Context) error {
		resources, err := deletable(w.admin.typed.Discovery())
		for _, resource := range resources {
			if resource == widgets {
				return fmt.Errorf("it names it")
			}
		}
		return err
	}); err != nil {
		return err
	}
	shown("a definition went, and its resource left discovery")
	return nil
}
