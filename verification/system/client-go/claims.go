package main

import (
	"context"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const claimProtection = "kubernetes.io/pvc-protection"

// claims lets go of volume claims that are being deleted and that no pod uses.
type claims struct {
	clients *clients
	claims  corelisters.PersistentVolumeClaimLister
	pods    corelisters.PodLister
}

func startClaims(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "pvc-protection-controller")
	if err != nil {
		return err
	}
	all, pods := m.informers.Core().V1().PersistentVolumeClaims(), m.informers.Core().V1().Pods()
	c := &claims{clients: clients, claims: all.Lister(), pods: pods.Lister()}
	loop := m.loop("pvc-protection-controller", c.sync)
	if err := loop.follow(all.Informer(), own); err != nil {
		return err
	}
	return loop.follow(pods.Informer(), func(object any) []string {
		var keys []string
		pod := object.(*core.Pod)
		for _, name := range claimsOf(pod) {
			keys = append(keys, pod.Namespace+"/"+name)
		}
		return keys
	})
}

func claimsOf(pod *core.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

func (c *claims) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if errors.IsNotFound(err) || err == nil && (claim.DeletionTimestamp == nil || !finalizedBy(claim, claimProtection)) {
		return nil
	} else if err != nil {
		return err
	}
	pods, err := c.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, used := range claimsOf(pod) {
			if used == name {
				return nil
			}
		}
	}
	changed := claim.DeepCopy()
	changed.Finalizers = nil
	for _, finalizer := range claim.Finalizers {
		if finalizer != claimProtection {
			changed.Finalizers = append(changed.Finalizers, finalizer)
		}
	}
	_, err = c.clients.typed.CoreV1().PersistentVolumeClaims(namespace).Update(ctx, changed, meta.UpdateOptions{})
	return err
}
