package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
)

const revision = "deployment.kubernetes.io/revision"

// deployments has a ReplicaSet for each template, and moves the pods to the newest of them at once.
type deployments struct {
	clients     *clients
	deployments appslisters.DeploymentLister
	sets        appslisters.ReplicaSetLister
}

func startDeployments(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "deployment-controller")
	if err != nil {
		return err
	}
	all, sets := m.informers.Apps().V1().Deployments(), m.informers.Apps().V1().ReplicaSets()
	c := &deployments{clients: clients, deployments: all.Lister(), sets: sets.Lister()}
	loop := m.loop("deployment-controller", c.sync)
	if err := loop.follow(all.Informer(), own); err != nil {
		return err
	}
	return loop.follow(sets.Informer(), func(object any) []string {
		if keys := ownerKey("Deployment")(object); keys != nil {
			return keys
		}
		var keys []string
		set := object.(*apps.ReplicaSet)
		for _, deployment := range c.wanting(set) {
			keys = append(keys, own(deployment)...)
		}
		return keys
	})
}

func (c *deployments) wanting(set *apps.ReplicaSet) []*apps.Deployment {
	var found []*apps.Deployment
	all, _ := c.deployments.Deployments(set.Namespace).List(labels.Everything())
	for _, deployment := range all {
		selector, err := meta.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(set.Labels)) {
			found = append(found, deployment)
		}
	}
	return found
}

func (c *deployments) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	deployment, err := c.deployments.Deployments(namespace).Get(name)
	if errors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	sets, err := c.claim(ctx, deployment)
	if err != nil {
		return err
	}
	if deployment.DeletionTimestamp == nil {
		newest, err := c.newest(ctx, deployment, sets)
		if errors.HasStatusCause(err, core.NamespaceTerminatingCause) {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.scale(ctx, deployment, newest, sets); err != nil {
			return err
		}
	}
	return c.status(ctx, deployment, sets)
}

func (c *deployments) claim(ctx context.Context, deployment *apps.Deployment) ([]*apps.ReplicaSet, error) {
	selector, err := meta.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	all, err := c.sets.ReplicaSets(deployment.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	owner := *meta.NewControllerRef(deployment, apps.SchemeGroupVersion.WithKind("Deployment"))
	alive := func(ctx context.Context) (types.UID, error) {
		fresh, err := c.clients.typed.AppsV1().Deployments(deployment.Namespace).Get(ctx, deployment.Name, meta.GetOptions{})
		if err != nil {
			return "", err
		} else if fresh.DeletionTimestamp != nil {
			return "", fmt.Errorf("%s is being deleted", fresh.Name)
		}
		return fresh.UID, nil
	}
	patch := func(ctx context.Context, name string, kind types.PatchType, body []byte) error {
		_, err := c.clients.typed.AppsV1().ReplicaSets(deployment.Namespace).Patch(ctx, name, kind, body, meta.PatchOptions{})
		return err
	}
	if deployment.DeletionTimestamp != nil {
		selector = labels.Nothing()
		patch = func(context.Context, string, types.PatchType, []byte) error { return nil }
	}
	return claim(ctx, owner, selector, all, alive, patch)
}

// newest finds the set of the template as it is now, or makes it.
func (c *deployments) newest(ctx context.Context, deployment *apps.Deployment, sets []*apps.ReplicaSet) (*apps.ReplicaSet, error) {
	highest := 0
	for _, set := range sets {
		number, _ := strconv.Atoi(set.Annotations[revision])
		highest = max(highest, number)
		template := set.Spec.Template.DeepCopy()
		delete(template.Labels, apps.DefaultDeploymentUniqueLabelKey)
		if equality.Semantic.DeepEqual(template, &deployment.Spec.Template) {
			return set, c.number(ctx, deployment, set.Annotations[revision])
		}
	}
	template := deployment.Spec.Template.DeepCopy()
	encoded, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	hash := fnv.New32a()
	_, _ = hash.Write(encoded)
	name := fmt.Sprintf("%08x", hash.Sum32())
	selector := deployment.Spec.Selector.DeepCopy()
	selector.MatchLabels[apps.DefaultDeploymentUniqueLabelKey] = name
	template.Labels[apps.DefaultDeploymentUniqueLabelKey] = name
	set := &apps.ReplicaSet{
		ObjectMeta: meta.ObjectMeta{
			Name: deployment.Name + "-" + name, Labels: template.Labels,
			Annotations:     map[string]string{revision: strconv.Itoa(highest + 1)},
			OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(deployment, apps.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: apps.ReplicaSetSpec{Replicas: new(int32), Selector: selector, Template: *template},
	}
	*set.Spec.Replicas = *deployment.Spec.Replicas
	return c.clients.typed.AppsV1().ReplicaSets(deployment.Namespace).Create(ctx, set, meta.CreateOptions{})
}

// number writes down which revision the deployment has.
func (c *deployments) number(ctx context.Context, deployment *apps.Deployment, number string) error {
	if deployment.Annotations[revision] == number {
		return nil
	}
	changed := deployment.DeepCopy()
	meta.SetMetaDataAnnotation(&changed.ObjectMeta, revision, number)
	_, err := c.clients.typed.AppsV1().Deployments(deployment.Namespace).Update(ctx, changed, meta.UpdateOptions{})
	return err
}

func (c *deployments) scale(ctx context.Context, deployment *apps.Deployment, newest *apps.ReplicaSet, sets []*apps.ReplicaSet) error {
	for _, set := range sets {
		wanted := int32(0)
		if set.UID == newest.UID {
			wanted = *deployment.Spec.Replicas
		}
		if *set.Spec.Replicas == wanted {
			continue
		}
		changed := set.DeepCopy()
		*changed.Spec.Replicas = wanted
		if _, err := c.clients.typed.AppsV1().ReplicaSets(set.Namespace).Update(ctx, changed, meta.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (c *deployments) status(ctx context.Context, deployment *apps.Deployment, sets []*apps.ReplicaSet) error {
	next := apps.DeploymentStatus{ObservedGeneration: deployment.Generation, CollisionCount: deployment.Status.CollisionCount}
	for _, set := range sets {
		next.Replicas += set.Status.Replicas
		next.ReadyReplicas += set.Status.ReadyReplicas
		next.AvailableReplicas += set.Status.AvailableReplicas
		if *set.Spec.Replicas > 0 {
			next.UpdatedReplicas = set.Status.Replicas
		}
	}
	available := apps.DeploymentCondition{Type: apps.DeploymentAvailable, Status: core.ConditionFalse, Reason: "MinimumReplicasUnavailable"}
	if next.AvailableReplicas >= *deployment.Spec.Replicas {
		available.Status, available.Reason = core.ConditionTrue, "MinimumReplicasAvailable"
	}
	available.LastUpdateTime, available.LastTransitionTime = meta.Now(), meta.Now()
	for _, old := range deployment.Status.Conditions {
		if old.Type == available.Type && old.Status == available.Status {
			available = old
		}
	}
	next.Conditions = []apps.DeploymentCondition{available}
	if equality.Semantic.DeepEqual(next, deployment.Status) {
		return nil
	}
	changed := deployment.DeepCopy()
	changed.Status = next
	_, err := c.clients.typed.AppsV1().Deployments(deployment.Namespace).UpdateStatus(ctx, changed, meta.UpdateOptions{})
	return err
}
