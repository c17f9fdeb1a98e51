package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// world is what every part of the check has at hand.
type world struct {
	// server is killed in the outage; a relay may be in front of it.
	server *server
	folder string
	users  *users
	admin  *clients
	faults *faults
}

// clients are client-go's kinds of them for one user.
type clients struct {
	config   *rest.Config
	typed    *kubernetes.Clientset
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

func clientsOf(config *rest.Config, err error) (*clients, error) {
	if err != nil {
		return nil, err
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	any, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{config: config, typed: typed, metadata: partial, dynamic: any}, nil
}

func (w *world) controller(ctx context.Context, name string) (*clients, error) {
	return clientsOf(w.users.controller(ctx, name))
}

func (w *world) user(name string, groups ...string) (*clients, error) {
	return clientsOf(w.users.user(name, groups...))
}

// shown says what has been seen to hold.
func shown(format string, arguments ...any) {
	fmt.Printf("ok    "+format+"\n", arguments...)
}
