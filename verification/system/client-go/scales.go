package main

import (
	"context"
	"fmt"

	autoscaling "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

// scales finds out by discovery how things are scaled, as the autoscaler does with the rights it has.
func scales(ctx context.Context, w *world) error {
	const namespace = "scales"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	if err := w.deployed(ctx, namespace, "web"); err != nil {
		return err
	}
	clients, err := w.controller(ctx, "horizontal-pod-autoscaler")
	if err != nil {
		return err
	}
	cached := memory.NewMemCacheClient(clients.typed.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	client, err := scale.NewForConfig(clients.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached))
	if err != nil {
		return err
	}
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	if err := eventually(ctx, "the deployment is scaled", func(ctx context.Context) error {
		current, err := client.Scales(namespace).Get(ctx, deployments, "web", meta.GetOptions{})
		if err != nil {
			return err
		}
		if current.Status.Selector != "app=web" || current.Spec.Replicas != 2 {
			return fmt.Errorf("it is %v", current)
		}
		current.Spec.Replicas = 4
		_, err = client.Scales(namespace).Update(ctx, deployments, current, meta.UpdateOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := eventually(ctx, "the deployment has grown", w.complete(namespace, "web", 4)); err != nil {
		return err
	}
	if err := customScale(ctx, w, client); err != nil {
		return err
	}
	shown("a deployment and a custom resource were scaled by what discovery says")
	return w.admin.typed.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{})
}

func customScale(ctx context.Context, w *world, client scale.ScalesGetter) error {
	made, err := w.admin.dynamic.Resource(widgets).Namespace("customs").Create(ctx, widget("scaled"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	wanted := &autoscaling.Scale{ObjectMeta: meta.ObjectMeta{Name: "scaled", ResourceVersion: made.GetResourceVersion()}, Spec: autoscaling.ScaleSpec{Replicas: 9}}
	changed, err := client.Scales("customs").Update(ctx, widgets.GroupResource(), wanted, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	if changed.Spec.Replicas != 9 {
		return fmt.Errorf("the custom resource is %v", changed)
	}
	if _, err := client.Scales("customs").Update(ctx, widgets.GroupResource(), wanted, meta.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("a scale of an old version: %v", err)
	}
	return nil
}
