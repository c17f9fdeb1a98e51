package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// leaders: of two candidates one leads, and when it dies without a word the other does.
func leaders(ctx context.Context, w *world) error {
	clients, err := w.user("system:kube-controller-manager")
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: clients.typed.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: "controller-manager"})
	terms := &terms{}
	var running sync.WaitGroup
	defer running.Wait()
	stop := map[string]context.CancelFunc{}
	for _, candidate := range []string{"a", "b"} {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, meta.NamespaceSystem, "kube-controller-manager",
			clients.typed.CoreV1(), clients.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: candidate, EventRecorder: recorder})
		if err != nil {
			return err
		}
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		stop[candidate] = cancel
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: candidate, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 500 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { terms.begin(candidate) },
				OnStoppedLeading: func() { terms.end(candidate) },
			},
		})
		if err != nil {
			return err
		}
		running.Go(func() { elector.Run(own) })
	}
	var first string
	if err := eventually(ctx, "one candidate leads", func(context.Context) error { return terms.one(&first, "") }); err != nil {
		return err
	}
	stop[first]()
	second := ""
	if err := eventually(ctx, "the other leads", func(context.Context) error { return terms.one(&second, first) }); err != nil {
		return err
	}
	lease, err := clients.typed.CoordinationV1().Leases(meta.NamespaceSystem).Get(ctx, "kube-controller-manager", meta.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != second || *lease.Spec.LeaseTransitions != 1 {
		return fmt.Errorf("the lease says %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	if err := eventually(ctx, "events tell of both", func(ctx context.Context) error {
		list, err := w.admin.typed.CoreV1().Events("").List(ctx, meta.ListOptions{FieldSelector: "reason=LeaderElection,involvedObject.kind=Lease"})
		if err == nil && len(list.Items) < 2 {
			err = fmt.Errorf("%d events", len(list.Items))
		}
		return err
	}); err != nil {
		return err
	}
	shown("of two candidates one led, and the other after it, as the lease and events say")
	return nil
}

type terms struct {
	mutex   sync.Mutex
	leading map[string]bool
}

func (t *terms) begin(who string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.leading == nil {
		t.leading = map[string]bool{}
	}
	t.leading[who] = true
}

func (t *terms) end(who string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.leading, who)
}

// one finds the only leader, who is not the last one.
func (t *terms) one(leader *string, last string) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.leading) != 1 {
		return fmt.Errorf("%v lead", t.leading)
	}
	for who := range t.leading {
		if who == last {
			return fmt.Errorf("%s leads", who)
		}
		*leader = who
	}
	return nil
}
