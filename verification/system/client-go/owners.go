package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ownerKey names the controller of an object if it is of that kind.
func ownerKey(kind string) func(any) []string {
	return func(object any) []string {
		child, ok := object.(meta.Object)
		if !ok {
			return nil
		}
		owner := meta.GetControllerOf(child)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []string{child.GetNamespace() + "/" + owner.Name}
	}
}

type patcher func(ctx context.Context, name string, kind types.PatchType, patch []byte) error

// claim returns the children that a controller has, and takes those that match and have no controller.
func claim[T meta.Object](ctx context.Context, owner meta.OwnerReference, selector labels.Selector, candidates []T,
	alive func(context.Context) (types.UID, error), patch patcher) ([]T, error) {
	var claimed []T
	for _, child := range candidates {
		controller := meta.GetControllerOf(child)
		matches := selector.Matches(labels.Set(child.GetLabels()))
		switch {
		case controller != nil && controller.UID == owner.UID && matches:
			claimed = append(claimed, child)
		case controller != nil && controller.UID == owner.UID && child.GetDeletionTimestamp() == nil:
			if err := release(ctx, owner.UID, child, patch); err != nil {
				return nil, err
			}
		case controller == nil && matches && child.GetDeletionTimestamp() == nil:
			if err := adopt(ctx, owner, child, alive, patch); errors.IsNotFound(err) || errors.IsInvalid(err) {
				continue
			} else if err != nil {
				return nil, err
			}
			claimed = append(claimed, child)
		}
	}
	return claimed, nil
}

// adopt makes sure that the owner is still the one that was cached, since a wrong reference is a reason to collect the child.
func adopt(ctx context.Context, owner meta.OwnerReference, child meta.Object, alive func(context.Context) (types.UID, error), patch patcher) error {
	if uid, err := alive(ctx); err != nil {
		return err
	} else if uid != owner.UID {
		return fmt.Errorf("%s was made anew", owner.Name)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": child.GetUID(), "ownerReferences": []meta.OwnerReference{owner}}})
	if err != nil {
		return err
	}
	return patch(ctx, child.GetName(), types.StrategicMergePatchType, body)
}

func release(ctx context.Context, owner types.UID, child meta.Object, patch patcher) error {
	err := patch(ctx, child.GetName(), types.StrategicMergePatchType, withoutOwners(child.GetUID(), owner))
	if errors.IsNotFound(err) || errors.IsInvalid(err) {
		return nil
	}
	return err
}

// withoutOwners takes references out of the list of an object that still has this UID.
func withoutOwners(child types.UID, owners ...types.UID) []byte {
	var references []map[string]any
	for _, owner := range owners {
		references = append(references, map[string]any{"$patch": "delete", "uid": owner})
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": child, "ownerReferences": references}})
	if err != nil {
		panic(err) // Strings always can be written.
	}
	return body
}

func split(key string) (namespace, name string) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		panic(err) // Only keys that were made of objects are queued.
	}
	return namespace, name
}
