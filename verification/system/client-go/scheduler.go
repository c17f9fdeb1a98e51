package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
)

const schedulerName = core.DefaultSchedulerName

// scheduler binds pods to nodes that are ready, spread by their names.
type scheduler struct {
	clients  *clients
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	recorder events.EventRecorder
	loop     *loop
}

// startScheduler follows all that the true one follows, though it decides by pods and nodes alone.
func startScheduler(ctx context.Context, w *world) error {
	clients, err := w.user("system:kube-scheduler")
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(clients.typed, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.typed.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	s := &scheduler{clients: clients, pods: pods.Lister(), nodes: nodes.Lister(),
		recorder: broadcaster.NewRecorder(scheme.Scheme, schedulerName)}
	s.loop = newLoop("kube-scheduler", w.faults, s.sync)
	if err := s.loop.follow(pods.Informer(), own); err != nil {
		return err
	}
	if err := s.loop.follow(nodes.Informer(), func(any) []string { return s.waiting() }); err != nil {
		return err
	}
	for _, other := range schedulersInformers(factory) {
		if err := s.loop.follow(other, func(any) []string { return nil }); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	if err := eventually(ctx, "the scheduler's informers have their state", func(context.Context) error {
		for kind, synced := range factory.WaitForCacheSync(closed) {
			if !synced {
				return fmt.Errorf("not that of %s", kind)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	go s.loop.run(ctx)
	return nil
}

func (s *scheduler) waiting() []string {
	var keys []string
	all, _ := s.pods.List(labels.Everything())
	for _, pod := range all {
		if pod.Spec.NodeName == "" {
			keys = append(keys, own(pod)...)
		}
	}
	return keys
}

func (s *scheduler) sync(ctx context.Context, key string) error {
	namespace, name := split(key)
	pod, err := s.pods.Pods(namespace).Get(name)
	if errors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Spec.SchedulerName != schedulerName || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	node := s.choose(pod)
	if node == "" {
		return s.unschedulable(ctx, pod)
	}
	binding := &core.Binding{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name, UID: pod.UID},
		Target:     core.ObjectReference{Kind: "Node", Name: node},
	}
	if err := s.clients.typed.CoreV1().Pods(namespace).Bind(ctx, binding, meta.CreateOptions{}); err != nil {
		return err
	}
	s.recorder.Eventf(pod, nil, core.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned %v to %v", key, node)
	return nil
}

func (s *scheduler) choose(pod *core.Pod) string {
	var fit []string
	all, _ := s.nodes.List(labels.Everything())
	for _, node := range all {
		for _, condition := range node.Status.Conditions {
			if condition.Type == core.NodeReady && condition.Status == core.ConditionTrue && !node.Spec.Unschedulable &&
				labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
				fit = append(fit, node.Name)
			}
		}
	}
	if len(fit) == 0 {
		return ""
	}
	sort.Strings(fit)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.Name))
	return fit[int(hash.Sum32()%uint32(len(fit)))]
}

// unschedulable says why a pod waits, once.
func (s *scheduler) unschedulable(ctx context.Context, pod *core.Pod) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.PodScheduled && condition.Status == core.ConditionFalse && condition.ObservedGeneration == pod.Generation {
			return nil
		}
	}
	s.recorder.Eventf(pod, nil, core.EventTypeWarning, "FailedScheduling", "Scheduling", "no node fits")
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []core.PodCondition{{
		Type: core.PodScheduled, Status: core.ConditionFalse, Reason: core.PodReasonUnschedulable,
		Message: "no node fits", LastTransitionTime: meta.NewTime(time.Now()), ObservedGeneration: pod.Generation,
	}}}})
	if err != nil {
		return err
	}
	_, err = s.clients.typed.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, body, meta.PatchOptions{}, "status")
	return err
}
