//go:debug default=go1.26

// Client-go against ringwatch: the clients, informers and controllers that Kubernetes' own components are made of.
//
//	client-go [-separate-users] [-relay 'ringwatch relay FLAG...'] -folder FOLDER -- ringwatch serve FLAG...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Everything is over by then, or something hangs.
const longest = 15 * time.Minute

const nodes = 3

type part struct {
	name string
	run  func(context.Context, *world) error
}

var parts = []part{
	{"informers", informersSync},
	{"components", components},
	{"workloads", workloads},
	{"collection", collection},
	{"customs", customs},
	{"scales", scales},
	{"requests", requests},
	{"watches", watches},
	{"aggregated", aggregated},
	{"leaders", leaders},
	{"outage", outage},
	{"removal", removal},
}

func main() {
	folder := flag.String("folder", "", "where the server's data and log are")
	separate := flag.Bool("separate-users", false, "each component is its own user, instead of the admin")
	relay := flag.String("relay", "", "the command of a relay, through which all reach the server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if err := check(ctx, *folder, *separate, strings.Fields(*relay), flag.Args()); err != nil {
		fmt.Println("FAIL ", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, folder string, separate bool, relay, command []string) error {
	proxy, err := proxyFlags(folder)
	if err != nil {
		return err
	}
	server, err := newServer(folder, "data", append(command, proxy...))
	if err != nil {
		return err
	}
	if err := server.start(); err != nil {
		return err
	}
	defer server.kill()
	admin, err := server.ready(ctx)
	if err != nil {
		return err
	}
	if len(relay) > 0 {
		front, err := newServer(folder, "relay", append(relay, "--kubeconfig", server.kubeconfig()))
		if err != nil {
			return err
		}
		if err := front.start(); err != nil {
			return err
		}
		defer front.kill()
		if admin, err = front.ready(ctx); err != nil {
			return err
		}
	}
	people := &users{admin, filepath.Join(server.data, "pki"), separate}
	return checkAll(ctx, &world{server: server, folder: folder, users: people, faults: &faults{relayed: len(relay) > 0}})
}

// checkAll lets all parts work, one after the other.
func checkAll(ctx context.Context, w *world) error {
	var err error
	if w.admin, err = clientsOf(w.users.asAdmin("check"), nil); err != nil {
		return err
	}
	for _, part := range parts {
		began := time.Now()
		if err := part.run(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("      %s took %.1f s\n", part.name, time.Since(began).Seconds())
	}
	return w.faults.verdict()
}

// components start once, and work until the end.
func components(ctx context.Context, w *world) error {
	if _, err := startManager(ctx, w); err != nil {
		return err
	}
	if err := startScheduler(ctx, w); err != nil {
		return err
	}
	for number := range nodes {
		if err := startKubelet(ctx, w, number); err != nil {
			return err
		}
	}
	shown("the controllers, the scheduler and %d kubelets follow what they need", nodes)
	return nil
}
