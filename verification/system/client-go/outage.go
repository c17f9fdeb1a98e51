package main

import (
	"context"

	apps "k8s.io/api/apps/v1"
)

const kills = 3

// outage kills the server while a deployment grows. Nobody is started again: informers, tokens and leases must do with what they have.
func outage(ctx context.Context, w *world) error {
	const namespace = "outage"
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	if err := w.deployed(ctx, namespace, "web"); err != nil {
		return err
	}
	for round := range kills {
		size := int32(6 + 2*round)
		if err := update(ctx, w, namespace, func(d *apps.Deployment) { *d.Spec.Replicas = size }); err != nil {
			return err
		}
		if err := w.restart(ctx); err != nil {
			return err
		}
		if err := eventually(ctx, "the deployment is complete after the server was killed", w.complete(namespace, "web", int(size))); err != nil {
			return err
		}
	}
	shown("the server was killed %d times while a deployment grew, and every component went on", kills)
	return nil
}

// restart kills the server and starts it again over the same store.
func (w *world) restart(ctx context.Context) error {
	w.faults.outage()
	w.server.kill()
	if err := w.server.start(); err != nil {
		return err
	}
	_, err := w.server.ready(ctx)
	return err
}
