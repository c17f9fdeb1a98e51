package main

import (
	"sync"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a cache was to show and has not shown by then, it has passed over, as it may when it listed again.
const expectationLifetime = 10 * time.Second

// expectations remembers what a controller created or deleted until its cache shows it, so that nothing is made twice.
type expectations struct {
	mutex   sync.Mutex
	pending map[string]map[string]time.Time
}

func newExpectations() *expectations {
	return &expectations{pending: map[string]map[string]time.Time{}}
}

func (e *expectations) expect(key, change string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.pending[key] == nil {
		e.pending[key] = map[string]time.Time{}
	}
	e.pending[key][change] = time.Now()
}

// met says whether nothing is awaited any more; the cache tells what it holds.
func (e *expectations) met(key string, holds map[string]meta.Object) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for change, since := range e.pending[key] {
		name, deletion := change[1:], change[0] == '-'
		object, present := holds[name]
		seen := present && !deletion || deletion && (!present || object.GetDeletionTimestamp() != nil)
		if seen || time.Since(since) > expectationLifetime {
			delete(e.pending[key], change)
		}
	}
	return len(e.pending[key]) == 0
}
