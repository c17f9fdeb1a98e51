package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/informers"
)

// manager is the controller manager: informers that all controllers share, and each controller with its own rights.
type manager struct {
	world     *world
	informers informers.SharedInformerFactory
	loops     []*loop
	others    []func(context.Context)
	garbage   *garbage
	running   sync.WaitGroup
}

// startManager runs until the context ends.
func startManager(ctx context.Context, w *world) (*manager, error) {
	clients, err := w.user("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	m := &manager{world: w, informers: informers.NewSharedInformerFactory(clients.typed, 0)}
	controllers := []func(context.Context, *manager) error{
		startDeployments, startReplicaSets, startEndpointSlices, startAccounts, startRoots, startClaims, startNamespaces, startGarbage,
	}
	for _, start := range controllers {
		if err := start(ctx, m); err != nil {
			return nil, err
		}
	}
	m.informers.Start(ctx.Done())
	if err := eventually(ctx, "the controllers' informers have their state", func(context.Context) error {
		for kind, synced := range m.informers.WaitForCacheSync(closed) {
			if !synced {
				return fmt.Errorf("not that of %s", kind)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, loop := range m.loops {
		m.running.Go(func() { loop.run(ctx) })
	}
	for _, other := range m.others {
		m.running.Go(func() { other(ctx) })
	}
	return m, eventually(ctx, "the garbage collector knows everything", m.garbage.graph.synced)
}

func (m *manager) loop(name string, sync func(context.Context, string) error) *loop {
	loop := newLoop(name, m.world.faults, sync)
	m.loops = append(m.loops, loop)
	return loop
}
