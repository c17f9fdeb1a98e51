package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authentication "k8s.io/api/authentication/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// kubelet has a node, and says of every pod there that it runs.
type kubelet struct {
	clients *clients
	node    string
	number  int
	pods    corelisters.PodLister
}

func startKubelet(ctx context.Context, w *world, number int) error {
	node := fmt.Sprintf("node-%d", number)
	clients, err := w.user("system:node:"+node, "system:nodes")
	if err != nil {
		return err
	}
	k := &kubelet{clients: clients, node: node, number: number}
	if err := k.register(ctx); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients.typed, 0, informers.WithTweakListOptions(func(options *meta.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	pods := factory.Core().V1().Pods()
	k.pods = pods.Lister()
	loop := newLoop("kubelet of "+node, w.faults, k.sync)
	if err := loop.follow(pods.Informer(), own); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go loop.run(ctx)
	return nil
}

// register makes the node, its status and its heartbeat.
func (k *kubelet) register(ctx context.Context) error {
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: k.node, Labels: map[string]string{core.LabelHostname: k.node}}}
	made, err := k.clients.typed.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	capacity := core.ResourceList{core.ResourceCPU: resource.MustParse("4"), core.ResourceMemory: resource.MustParse("8Gi"), core.ResourcePods: resource.MustParse("110")}
	body, err := json.Marshal(map[string]any{"status": core.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now()}},
	}})
	if err != nil {
		return err
	}
	if _, err := k.clients.typed.CoreV1().Nodes().PatchStatus(ctx, k.node, body); err != nil {
		return fmt.Errorf("status of the node: %w", err)
	}
	seconds, now := int32(40), meta.NewMicroTime(time.Now())
	lease := &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: k.node, Namespace: core.NamespaceNodeLease,
			OwnerReferences: []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: made.Name, UID: made.UID}}},
		Spec: coordination.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	_, err = k.clients.typed.CoordinationV1().Leases(core.NamespaceNodeLease).Create(ctx, lease, meta.CreateOptions{})
	return err
}

func (k *kubelet) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	pod, err := k.pods.Pods(namespace).Get(name)
	if errors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	pods := k.clients.typed.CoreV1().Pods(namespace)
	if pod.DeletionTimestamp != nil {
		now := int64(0)
		err := pods.Delete(ctx, name, meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: meta.NewUIDPreconditions(string(pod.UID))})
		if errors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if pod.Status.Phase == core.PodRunning {
		return nil
	}
	if err := k.mounts(ctx, pod); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": k.running(pod)})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, name, types.StrategicMergePatchType, body, meta.PatchOptions{}, "status")
	return err
}

// mounts asks for what the volume of every pod's service account holds.
func (k *kubelet) mounts(ctx context.Context, pod *core.Pod) error {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				if _, err := k.clients.typed.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, source.ConfigMap.Name, meta.GetOptions{}); err != nil {
					return err
				}
			}
			if source.ServiceAccountToken != nil {
				request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
					ExpirationSeconds: source.ServiceAccountToken.ExpirationSeconds,
					BoundObjectRef:    &authentication.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
				}}
				if _, err := k.clients.typed.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, meta.CreateOptions{}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (k *kubelet) running(pod *core.Pod) core.PodStatus {
	now := meta.Now()
	address := fmt.Sprintf("10.%d.%d.%d", k.number+1, pod.UID[0], pod.UID[1])
	status := core.PodStatus{Phase: core.PodRunning, HostIP: fmt.Sprintf("192.0.2.%d", k.number+1), PodIP: address,
		PodIPs: []core.PodIP{{IP: address}}, StartTime: &now}
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.PodReady, core.ContainersReady} {
		status.Conditions = append(status.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now, ObservedGeneration: pod.Generation})
	}
	started := true
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{Name: container.Name, Ready: true, Started: &started,
			Image: container.Image, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}}})
	}
	return status
}
