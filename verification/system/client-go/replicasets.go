package main

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// replicaSets keeps as many pods as a ReplicaSet wants.
type replicaSets struct {
	clients *clients
	sets    appslisters.ReplicaSetLister
	pods    corelisters.PodLister
	awaited *expectations
	loop    *loop
}

func startReplicaSets(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "replicaset-controller")
	if err != nil {
		return err
	}
	sets, pods := m.informers.Apps().V1().ReplicaSets(), m.informers.Core().V1().Pods()
	c := &replicaSets{clients: clients, sets: sets.Lister(), pods: pods.Lister(), awaited: newExpectations()}
	loop := m.loop("replicaset-controller", c.sync)
	c.loop = loop
	if err := loop.follow(sets.Informer(), own); err != nil {
		return err
	}
	return loop.follow(pods.Informer(), func(object any) []string {
		if keys := ownerKey("ReplicaSet")(object); keys != nil {
			return keys
		}
		return c.matching(object.(*core.Pod))
	})
}

// matching are the sets that may want a pod without a controller.
func (c *replicaSets) matching(pod *core.Pod) []string {
	if meta.GetControllerOf(pod) != nil {
		return nil
	}
	var keys []string
	sets, _ := c.sets.GetPodReplicaSets(pod)
	for _, set := range sets {
		keys = append(keys, own(set)...)
	}
	return keys
}

func (c *replicaSets) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	set, err := c.sets.ReplicaSets(namespace).Get(name)
	if errors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	mine, err := c.claim(ctx, set)
	if err != nil {
		return err
	}
	held := map[string]meta.Object{}
	var active []*core.Pod
	for _, pod := range mine {
		held[pod.Name] = pod
		if pod.DeletionTimestamp == nil && pod.Status.Phase != core.PodSucceeded && pod.Status.Phase != core.PodFailed {
			active = append(active, pod)
		}
	}
	if !c.awaited.met(key, held) {
		c.loop.queue.AddAfter(key, expectationLifetime)
	} else if set.DeletionTimestamp == nil {
		if err := c.scale(ctx, key, set, active); err != nil {
			return err
		}
	}
	return c.status(ctx, set, active)
}

func (c *replicaSets) claim(ctx context.Context, set *apps.ReplicaSet) ([]*core.Pod, error) {
	selector, err := meta.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, err
	}
	all, err := c.pods.Pods(set.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	owner := *meta.NewControllerRef(set, apps.SchemeGroupVersion.WithKind("ReplicaSet"))
	if set.DeletionTimestamp != nil {
		var mine []*core.Pod
		for _, pod := range all {
			if meta.IsControlledBy(pod, set) {
				mine = append(mine, pod)
			}
		}
		return mine, nil
	}
	alive := func(ctx context.Context) (types.UID, error) {
		fresh, err := c.clients.typed.AppsV1().ReplicaSets(set.Namespace).Get(ctx, set.Name, meta.GetOptions{})
		if err != nil {
			return "", err
		}
		return fresh.UID, nil
	}
	patch := func(ctx context.Context, name string, kind types.PatchType, body []byte) error {
		_, err := c.clients.typed.CoreV1().Pods(set.Namespace).Patch(ctx, name, kind, body, meta.PatchOptions{})
		return err
	}
	return claim(ctx, owner, selector, all, alive, patch)
}

func (c *replicaSets) scale(ctx context.Context, key string, set *apps.ReplicaSet, active []*core.Pod) error {
	pods := c.clients.typed.CoreV1().Pods(set.Namespace)
	for range int(*set.Spec.Replicas) - len(active) {
		pod := &core.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.GenerateName = set.Name + "-"
		pod.OwnerReferences = []meta.OwnerReference{*meta.NewControllerRef(set, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
		made, err := pods.Create(ctx, pod, meta.CreateOptions{})
		if errors.HasStatusCause(err, core.NamespaceTerminatingCause) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a pod: %w", err)
		}
		c.awaited.expect(key, "+"+made.Name)
	}
	for _, pod := range active[min(len(active), int(*set.Spec.Replicas)):] {
		if err := pods.Delete(ctx, pod.Name, meta.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
			return err
		}
		c.awaited.expect(key, "-"+pod.Name)
	}
	return nil
}

func (c *replicaSets) status(ctx context.Context, set *apps.ReplicaSet, active []*core.Pod) error {
	next := apps.ReplicaSetStatus{Replicas: int32(len(active)), ObservedGeneration: set.Generation, Conditions: set.Status.Conditions}
	wanted := labels.SelectorFromSet(set.Spec.Template.Labels)
	for _, pod := range active {
		if wanted.Matches(labels.Set(pod.Labels)) {
			next.FullyLabeledReplicas++
		}
		if podReady(pod) {
			next.ReadyReplicas++
			next.AvailableReplicas++
		}
	}
	old := set.Status
	if old.Replicas == next.Replicas && old.ReadyReplicas == next.ReadyReplicas && old.ObservedGeneration == next.ObservedGeneration &&
		old.FullyLabeledReplicas == next.FullyLabeledReplicas && old.AvailableReplicas == next.AvailableReplicas {
		return nil
	}
	changed := set.DeepCopy()
	changed.Status = next
	_, err := c.clients.typed.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, changed, meta.UpdateOptions{})
	return err
}

func podReady(pod *core.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.PodReady {
			return condition.Status == core.ConditionTrue
		}
	}
	return false
}
