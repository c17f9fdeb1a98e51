package main

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func newDeployment(name string, replicas int32, image string) *apps.Deployment {
	label := map[string]string{"app": name}
	return &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: label},
		Spec: apps.DeploymentSpec{Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: label}, Template: core.PodTemplateSpec{
			ObjectMeta: meta.ObjectMeta{Labels: label},
			Spec:       core.PodSpec{Containers: []core.Container{{Name: "web", Image: image, Ports: []core.ContainerPort{{ContainerPort: 80}}}}},
		}},
	}
}

func newService(name string) *core.Service {
	return &core.Service{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: core.ServiceSpec{
		Selector: map[string]string{"app": name},
		Ports:    []core.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)}},
	}}
}

func (w *world) namespace(ctx context.Context, name string) error {
	namespace := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}
	if _, err := w.admin.typed.CoreV1().Namespaces().Create(ctx, namespace, meta.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, "the namespace "+name+" has an account and the authority", func(ctx context.Context) error {
		if _, err := w.admin.typed.CoreV1().ServiceAccounts(name).Get(ctx, "default", meta.GetOptions{}); err != nil {
			return err
		}
		_, err := w.admin.typed.CoreV1().ConfigMaps(name).Get(ctx, rootsName, meta.GetOptions{})
		return err
	})
}

// complete says what a deployment and its service still lack.
func (w *world) complete(namespace, name string, replicas int) func(context.Context) error {
	return func(ctx context.Context) error {
		deployment, err := w.admin.typed.AppsV1().Deployments(namespace).Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		status := deployment.Status
		if status.ObservedGeneration != deployment.Generation || int(status.AvailableReplicas) != replicas || int(status.Replicas) != replicas {
			return fmt.Errorf("status %v of generation %d", status, deployment.Generation)
		}
		pods, err := w.admin.typed.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		if len(pods.Items) != replicas {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		for _, pod := range pods.Items {
			if err := placed(&pod); err != nil {
				return err
			}
		}
		return w.endpoints(ctx, namespace, name, replicas)
	}
}

func placed(pod *core.Pod) error {
	scheduled := false
	for _, condition := range pod.Status.Conditions {
		scheduled = scheduled || condition.Type == core.PodScheduled && condition.Status == core.ConditionTrue
	}
	if !scheduled || pod.Spec.NodeName == "" || !podReady(pod) {
		return fmt.Errorf("%s on %q has %v", pod.Name, pod.Spec.NodeName, pod.Status.Conditions)
	}
	owner := meta.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || pod.GenerateName != owner.Name+"-" {
		return fmt.Errorf("%s belongs to %v", pod.Name, owner)
	}
	return nil
}

func (w *world) endpoints(ctx context.Context, namespace, name string, replicas int) error {
	slices, err := w.admin.typed.DiscoveryV1().EndpointSlices(namespace).List(ctx, meta.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + name})
	if err != nil {
		return err
	}
	ready := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if ready != replicas {
		return fmt.Errorf("%d endpoints", ready)
	}
	return nil
}

// workloads: from a deployment to endpoints, another template, another size.
func workloads(ctx context.Context, w *world) error {
	const namespace = "workloads"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	deployments := w.admin.typed.AppsV1().Deployments(namespace)
	if _, err := w.admin.typed.CoreV1().Services(namespace).Create(ctx, newService("web"), meta.CreateOptions{}); err != nil {
		return err
	}
	if _, err := deployments.Create(ctx, newDeployment("web", 3, "web:1"), meta.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "the deployment runs", w.complete(namespace, "web", 3)); err != nil {
		return err
	}
	shown("a deployment became a replica set, scheduled pods and endpoints")
	if err := update(ctx, w, namespace, func(d *apps.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }); err != nil {
		return err
	}
	if err := eventually(ctx, "the new template runs", func(ctx context.Context) error {
		pods, err := w.admin.typed.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Spec.Containers[0].Image != "web:2" {
				return fmt.Errorf("%s is old", pod.Name)
			}
		}
		return w.complete(namespace, "web", 3)(ctx)
	}); err != nil {
		return err
	}
	shown("another template made another replica set, and the pods moved there")
	return recovers(ctx, w, namespace)
}

func update(ctx context.Context, w *world, namespace string, change func(*apps.Deployment)) error {
	return eventually(ctx, "the deployment is changed", func(ctx context.Context) error {
		deployment, err := w.admin.typed.AppsV1().Deployments(namespace).Get(ctx, "web", meta.GetOptions{})
		if err != nil {
			return err
		}
		change(deployment)
		_, err = w.admin.typed.AppsV1().Deployments(namespace).Update(ctx, deployment, meta.UpdateOptions{})
		return err
	})
}

// recovers deletes a pod and a slice, which come again.
func recovers(ctx context.Context, w *world, namespace string) error {
	pods, err := w.admin.typed.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	lost := pods.Items[0]
	if err := w.admin.typed.CoreV1().Pods(namespace).Delete(ctx, lost.Name, meta.DeleteOptions{}); err != nil {
		return err
	}
	if err := w.admin.typed.DiscoveryV1().EndpointSlices(namespace).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{}); err != nil {
		return err
	}
	err = eventually(ctx, "the lost pod is replaced", func(ctx context.Context) error {
		if _, err := w.admin.typed.CoreV1().Pods(namespace).Get(ctx, lost.Name, meta.GetOptions{}); !errors.IsNotFound(err) {
			return fmt.Errorf("%s is still there: %v", lost.Name, err)
		}
		return w.complete(namespace, "web", 3)(ctx)
	})
	if err == nil {
		shown("a lost pod and a lost endpoint slice came again")
	}
	return err
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }
