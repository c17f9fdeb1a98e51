package main

import (
	"context"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// accounts gives every namespace its service account, and roots the authority's certificate.
type accounts struct {
	clients    *clients
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

func startAccounts(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "service-account-controller")
	if err != nil {
		return err
	}
	namespaces, all := m.informers.Core().V1().Namespaces(), m.informers.Core().V1().ServiceAccounts()
	c := &accounts{clients: clients, namespaces: namespaces.Lister(), accounts: all.Lister()}
	loop := m.loop("service-account-controller", c.sync)
	if err := loop.follow(namespaces.Informer(), own); err != nil {
		return err
	}
	return loop.follow(all.Informer(), namespaceOf)
}

func namespaceOf(object any) []string {
	return []string{object.(meta.Object).GetNamespace()}
}

func (c *accounts) sync(ctx context.Context, name string) error {
	if active, err := activeNamespace(c.namespaces, name); !active {
		return err
	}
	if _, err := c.accounts.ServiceAccounts(name).Get("default"); !errors.IsNotFound(err) {
		return err
	}
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "default"}}
	_, err := c.clients.typed.CoreV1().ServiceAccounts(name).Create(ctx, account, meta.CreateOptions{})
	if errors.HasStatusCause(err, core.NamespaceTerminatingCause) || errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func activeNamespace(namespaces corelisters.NamespaceLister, name string) (bool, error) {
	namespace, err := namespaces.Get(name)
	if errors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return namespace.Status.Phase == core.NamespaceActive, nil
}

// roots puts the authority's certificate into every namespace, and puts it back when it was changed.
type roots struct {
	clients    *clients
	namespaces corelisters.NamespaceLister
	maps       corelisters.ConfigMapLister
	authority  string
}

const rootsName = "kube-root-ca.crt"

func startRoots(ctx context.Context, m *manager) error {
	clients, err := m.world.controller(ctx, "root-ca-cert-publisher")
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(filepath.Join(m.world.users.pki, "ca.crt"))
	if err != nil {
		return err
	}
	namespaces, maps := m.informers.Core().V1().Namespaces(), m.informers.Core().V1().ConfigMaps()
	c := &roots{clients: clients, namespaces: namespaces.Lister(), maps: maps.Lister(), authority: string(authority)}
	loop := m.loop("root-ca-cert-publisher", c.sync)
	if err := loop.follow(namespaces.Informer(), own); err != nil {
		return err
	}
	return loop.follow(maps.Informer(), func(object any) []string {
		if object.(meta.Object).GetName() != rootsName {
			return nil
		}
		return namespaceOf(object)
	})
}

func (c *roots) sync(ctx context.Context, name string) error {
	if active, err := activeNamespace(c.namespaces, name); !active {
		return err
	}
	maps := c.clients.typed.CoreV1().ConfigMaps(name)
	data := map[string]string{"ca.crt": c.authority}
	present, err := c.maps.ConfigMaps(name).Get(rootsName)
	if errors.IsNotFound(err) {
		_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: rootsName}, Data: data}, meta.CreateOptions{})
		if errors.HasStatusCause(err, core.NamespaceTerminatingCause) || errors.IsAlreadyExists(err) {
			return nil
		}
		return err
	} else if err != nil || present.Data["ca.crt"] == c.authority {
		return err
	}
	changed := present.DeepCopy()
	changed.Data = data
	_, err = maps.Update(ctx, changed, meta.UpdateOptions{})
	return err
}
