package main

import (
	"context"
	goerrors "errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
)

const (
	keptFaults = 50
	// For so long after the server was killed requests may still tell of it.
	aftermath = 20 * time.Second
)

// faults gathers what controllers were answered that no controller should be answered. They go on, as the true ones do.
type faults struct {
	// relayed is that of requests that reach the server through a relay, which answers itself while the server is gone.
	relayed bool
	mutex   sync.Mutex
	killed  time.Time
	seen    []string
}

// expected errors are those that a race with others explains, and those of callers that went away themselves.
func expected(err error) bool {
	var left remaining
	return goerrors.Is(err, context.Canceled) || goerrors.As(err, &left) || discovery.IsGroupDiscoveryFailedError(goerrors.Unwrap(err)) || meta.IsNoMatchError(err) || errors.IsConflict(err) || errors.IsNotFound(err) ||
		errors.IsAlreadyExists(err) || errors.HasStatusCause(err, core.NamespaceTerminatingCause)
}

// unreachable errors are no answers.
func unreachable(err error) bool {
	var network net.Error
	if goerrors.As(err, &network) || goerrors.Is(err, io.EOF) || goerrors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	for _, text := range []string{"connection refused", "connection reset", "EOF", "http2: client connection"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func (f *faults) report(who string, err error) {
	if err == nil || expected(err) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	answered := f.relayed && (errors.IsServiceUnavailable(err) || errors.IsServerTimeout(err))
	if time.Since(f.killed) < aftermath && (answered || unreachable(err)) {
		return
	}
	if len(f.seen) < keptFaults {
		f.seen = append(f.seen, fmt.Sprintf("%s: %v", who, err))
		fmt.Printf("fault %s: %v\n", who, err)
	}
}

// outage says that the server is killed now.
func (f *faults) outage() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.killed = time.Now()
}

func (f *faults) verdict() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.seen) == 0 {
		return nil
	}
	return fmt.Errorf("%d answers that no controller should get, the first: %s", len(f.seen), f.seen[0])
}
