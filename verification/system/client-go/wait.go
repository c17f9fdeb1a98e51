package main

import (
	"context"
	"fmt"
	"time"
)

const (
	poll = 50 * time.Millisecond
	// Long enough for a debug build beside others on two cores.
	patience = 2 * time.Minute
)

// within asks again and again until the condition holds; what it last said is the error after the deadline.
func within(ctx context.Context, what string, limit time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, limit, last)
		case <-time.After(poll):
		}
	}
}

func eventually(ctx context.Context, what string, condition func(context.Context) error) error {
	return within(ctx, what, patience, condition)
}
