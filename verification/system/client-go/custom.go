package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

func definition() *unstructured.Unstructured {
	integer := map[string]any{"type": "integer"}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"spec": object(map[string]any{"replicas": integer}), "status": object(map[string]any{"replicas": integer})})},
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{
					"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
			}},
		},
	}}
}

func widget(name string, owners ...meta.OwnerReference) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": int64(1)}}}
	made.SetOwnerReferences(owners)
	return made
}

// customs: a definition, informers on its objects, and objects that own each other; the garbage collector learns of them by discovery.
func customs(ctx context.Context, w *world) error {
	const namespace = "customs"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	if _, err := w.admin.dynamic.Resource(definitions).Create(ctx, definition(), meta.CreateOptions{}); err != nil {
		return err
	}
	client := w.admin.dynamic.Resource(widgets).Namespace(namespace)
	var parent *unstructured.Unstructured
	if err := eventually(ctx, "widgets are served", func(ctx context.Context) error {
		var err error
		parent, err = client.Create(ctx, widget("parent"), meta.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := followed(ctx, w, client, namespace); err != nil {
		return err
	}
	block := true
	owner := meta.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: parent.GetName(), UID: parent.GetUID(), BlockOwnerDeletion: &block}
	for _, name := range []string{"child-1", "child-2"} {
		if _, err := client.Create(ctx, widget(name, owner), meta.CreateOptions{}); err != nil {
			return err
		}
	}
	policy := meta.DeletePropagationForeground
	if err := client.Delete(ctx, "parent", meta.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return err
	}
	if err := eventually(ctx, "custom resources are collected", func(ctx context.Context) error {
		list, err := client.List(ctx, meta.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	}); err != nil {
		return err
	}
	shown("custom resources were collected in the foreground")
	return nil
}

// followed compares what a dynamic informer holds with what was written.
func followed(ctx context.Context, w *world, client dynamic.ResourceInterface, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(w.admin.dynamic, 0, namespace, nil)
	informer := factory.ForResource(widgets).Informer()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.faults.report("the informer of widgets", err)
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if _, err := client.Patch(ctx, "parent", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), meta.PatchOptions{}); err != nil {
		return err
	}
	if _, err := client.Patch(ctx, "parent", types.MergePatchType, []byte(`{"status":{"replicas":3}}`), meta.PatchOptions{}, "status"); err != nil {
		return err
	}
	if _, err := client.Patch(ctx, "parent", types.StrategicMergePatchType, []byte(`{}`), meta.PatchOptions{}); !errors.IsUnsupportedMediaType(err) {
		return fmt.Errorf("a strategic merge patch of a custom resource was answered %v", err)
	}
	if err := eventually(ctx, "the informer shows the last state", func(context.Context) error {
		object, present, err := informer.GetStore().GetByKey(namespace + "/parent")
		if err != nil || !present {
			return fmt.Errorf("present: %t, %v", present, err)
		}
		shown := object.(*unstructured.Unstructured)
		spec, _, _ := unstructured.NestedInt64(shown.Object, "spec", "replicas")
		status, _, _ := unstructured.NestedInt64(shown.Object, "status", "replicas")
		if spec != 7 || status != 3 {
			return fmt.Errorf("%d and %d", spec, status)
		}
		return nil
	}); err != nil {
		return err
	}
	shown("a dynamic informer followed custom resources")
	return nil
}
