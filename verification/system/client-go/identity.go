package main

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"path/filepath"

	"golang.org/x/oauth2"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// users says who the components are: everyone the admin, or each what it is in a cluster.
type users struct {
	admin    *rest.Config
	pki      string
	separate bool
}

// anonymous reaches the server without saying who asks; each user adds what proves them.
func (u *users) anonymous(agent string) *rest.Config {
	config := rest.AnonymousClientConfig(u.admin)
	config.UserAgent = agent
	config.QPS, config.Burst = 200, 400
	return config
}

func (u *users) asAdmin(agent string) *rest.Config {
	config := rest.CopyConfig(u.admin)
	config.UserAgent = agent
	config.QPS, config.Burst = 200, 400
	return config
}

// user is somebody with a client certificate, as kube-scheduler and the kubelets are.
func (u *users) user(name string, groups ...string) (*rest.Config, error) {
	if !u.separate {
		return u.asAdmin(name), nil
	}
	config := u.anonymous(name)
	authority, err := tls.LoadX509KeyPair(filepath.Join(u.pki, "ca.crt"), filepath.Join(u.pki, "ca.key"))
	if err != nil {
		return nil, err
	}
	certificate, key, err := sign(&authority, pkix.Name{CommonName: name, Organization: groups})
	if err != nil {
		return nil, err
	}
	config.CertData, config.KeyData = certificate, key
	return config, nil
}

// controller is a service account of kube-system, which the controller manager makes when it is missing and asks for tokens of.
func (u *users) controller(ctx context.Context, name string) (*rest.Config, error) {
	if !u.separate {
		return u.asAdmin(name), nil
	}
	manager, err := u.user("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(manager)
	if err != nil {
		return nil, err
	}
	accounts := client.CoreV1().ServiceAccounts(meta.NamespaceSystem)
	if _, err := accounts.Get(ctx, name, meta.GetOptions{}); errors.IsNotFound(err) {
		account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}
		_, err = accounts.Create(ctx, account, meta.CreateOptions{})
		if err != nil && !errors.IsAlreadyExists(err) {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	config := u.anonymous(name)
	config.Wrap(transport.TokenSourceWrapTransport(transport.NewCachedTokenSource(&tokens{ctx, client, name})))
	return config, nil
}

type tokens struct {
	ctx     context.Context
	client  kubernetes.Interface
	account string
}

// Token asks for one that lasts an hour; client-go asks again before that is over.
func (t *tokens) Token() (*oauth2.Token, error) {
	seconds := int64(3600)
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := t.client.CoreV1().ServiceAccounts(meta.NamespaceSystem).
		CreateToken(t.ctx, t.account, request, meta.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("a token for %s: %w", t.account, err)
	}
	return &oauth2.Token{AccessToken: answer.Status.Token, TokenType: "Bearer", Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}
