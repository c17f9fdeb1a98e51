package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const workers = 3

// loop is a controller: keys of objects that may need work, and what is done about one of them.
type loop struct {
	name   string
	queue  workqueue.TypedRateLimitingInterface[string]
	sync   func(context.Context, string) error
	faults *faults
}

func newLoop(name string, faults *faults, sync func(context.Context, string) error) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 2*time.Second)
	return &loop{name: name, queue: workqueue.NewTypedRateLimitingQueue(limiter), sync: sync, faults: faults}
}

func (l *loop) run(ctx context.Context) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { wait.UntilWithContext(ctx, l.work, time.Millisecond) })
	}
	<-ctx.Done()
	l.queue.ShutDown()
	group.Wait()
}

func (l *loop) work(ctx context.Context) {
	for {
		key, closed := l.queue.Get()
		if closed {
			return
		}
		err := l.sync(ctx, key)
		if err == nil {
			l.queue.Forget(key)
		} else if ctx.Err() == nil {
			l.faults.report(l.name+" at "+key, err)
			l.queue.AddRateLimited(key)
		}
		l.queue.Done(key)
	}
}

// follow enqueues what the function names whenever an object changes.
func (l *loop) follow(informer cache.SharedIndexInformer, keys func(any) []string) error {
	add := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		for _, key := range keys(object) {
			l.queue.Add(key)
		}
	}
	// Several loops follow the same informer; the last one's name is in the report.
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		l.faults.report("an informer of "+l.name, err)
	}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(old, new any) { add(old); add(new) },
		DeleteFunc: add,
	})
	return err
}

// own is the key of the object itself.
func own(object any) []string {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return nil
	}
	return []string{key}
}
