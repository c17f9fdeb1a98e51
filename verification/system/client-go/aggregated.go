package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const aggregatedNamespace = "aggregated"

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	petsOf      = schema.GroupVersionResource{Group: "pets.example.com", Version: "v1", Resource: "pets"}
)

// aggregated: an API server of another process' kind behind an APIService, which knows people by ringwatch alone.
func aggregated(ctx context.Context, w *world) error {
	if err := w.namespace(ctx, aggregatedNamespace); err != nil {
		return err
	}
	server, err := w.account(ctx, "server")
	if err != nil {
		return err
	}
	if err := w.delegate(ctx, "server"); err != nil {
		return err
	}
	kubeconfig := filepath.Join(w.folder, "pets.kubeconfig")
	if err := writeKubeconfig(server, kubeconfig); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pets, err := startPets(ctx, kubeconfig)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, pets); err != nil {
		return err
	}
	// It may take requests before it has read whom to believe; until then everyone is anonymous.
	if err := eventually(ctx, "the admin is known", func(ctx context.Context) error {
		passed, err := w.admin.dynamic.Resource(petsOf).Namespace(aggregatedNamespace).Get(ctx, "any", meta.GetOptions{})
		if err != nil {
			return err
		}
		if user := passed.GetAnnotations()["user"]; user != w.adminName(ctx) {
			return fmt.Errorf("the admin is known as %q", user)
		}
		return nil
	}); err != nil {
		return err
	}
	shown("an API server behind an APIService was told who asks")
	if err := w.askDirectly(ctx, pets); err != nil {
		return err
	}
	shown("it had tokens and rights reviewed")
	if err := w.admin.dynamic.Resource(apiServices).Delete(ctx, "v1.pets.example.com", meta.DeleteOptions{}); err != nil {
		return err
	}
	return w.admin.typed.CoreV1().Namespaces().Delete(ctx, aggregatedNamespace, meta.DeleteOptions{})
}

func (w *world) adminName(ctx context.Context) string {
	review, err := w.admin.typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, meta.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}

// account is a service account with a token of its own.
func (w *world) account(ctx context.Context, name string) (*rest.Config, error) {
	accounts := w.admin.typed.CoreV1().ServiceAccounts(aggregatedNamespace)
	if _, err := accounts.Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
		return nil, err
	}
	token, err := accounts.CreateToken(ctx, name, &authentication.TokenRequest{}, meta.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := w.users.anonymous(name)
	config.BearerToken = token.Status.Token
	return config, nil
}

// delegate gives an account the two roles that every such server needs.
func (w *world) delegate(ctx context.Context, account string) error {
	subjects := []rbac.Subject{{Kind: "ServiceAccount", Namespace: aggregatedNamespace, Name: account}}
	reads := &rbac.RoleBinding{ObjectMeta: meta.ObjectMeta{Name: "pets"}, Subjects: subjects,
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}}
	if _, err := w.admin.typed.RbacV1().RoleBindings(meta.NamespaceSystem).Create(ctx, reads, meta.CreateOptions{}); err != nil {
		return err
	}
	asks := &rbac.ClusterRoleBinding{ObjectMeta: meta.ObjectMeta{Name: "pets"}, Subjects: subjects,
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}}
	_, err := w.admin.typed.RbacV1().ClusterRoleBindings().Create(ctx, asks, meta.CreateOptions{})
	return err
}

func writeKubeconfig(config *rest.Config, path string) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["it"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	file.CurrentContext = "it"
	return clientcmd.WriteToFile(*file, path)
}

// serve has ringwatch pass requests on, and waits until it does.
func (w *world) serve(ctx context.Context, pets *pets) error {
	port := pets.listener.Addr().(*net.TCPAddr).Port
	service := &core.Service{ObjectMeta: meta.ObjectMeta{Name: "pets"}, Spec: core.ServiceSpec{Type: core.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := w.admin.typed.CoreV1().Services(aggregatedNamespace).Create(ctx, service, meta.CreateOptions{}); err != nil {
		return err
	}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.pets.example.com"},
		"spec": map[string]any{"group": "pets.example.com", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"caBundle": base64.StdEncoding.EncodeToString(pets.authority),
			"service":  map[string]any{"namespace": aggregatedNamespace, "name": "pets", "port": int64(port)}},
	}}
	if _, err := w.admin.dynamic.Resource(apiServices).Create(ctx, api, meta.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, "the APIService is available and in discovery", func(ctx context.Context) error {
		object, err := w.admin.dynamic.Resource(apiServices).Get(ctx, "v1.pets.example.com", meta.GetOptions{})
		if err != nil {
			return err
		}
		list, err := w.admin.typed.Discovery().ServerResourcesForGroupVersion("pets.example.com/v1")
		if err != nil {
			return fmt.Errorf("%v: %w", object.Object["status"], err)
		}
		if len(list.APIResources) != 1 {
			return fmt.Errorf("it has %v", list.APIResources)
		}
		// Of a server that was not asked yet discovery says that it is stale.
		_, err = deletable(w.admin.typed.Discovery())
		return err
	})
}

// askDirectly goes past ringwatch with tokens that only ringwatch can judge.
func (w *world) askDirectly(ctx context.Context, pets *pets) error {
	caller, err := w.account(ctx, "caller")
	if err != nil {
		return err
	}
	caller.Host = "https://" + pets.listener.Addr().String()
	caller.TLSClientConfig = rest.TLSClientConfig{CAData: pets.authority}
	client, err := dynamic.NewForConfig(caller)
	if err != nil {
		return err
	}
	get := func(ctx context.Context) error {
		object, err := client.Resource(petsOf).Namespace(aggregatedNamespace).Get(ctx, "any", meta.GetOptions{})
		if err != nil {
			return err
		}
		if user := object.GetAnnotations()["user"]; user != "system:serviceaccount:"+aggregatedNamespace+":caller" {
			return fmt.Errorf("the caller is known as %q", user)
		}
		return nil
	}
	if err := get(ctx); !errors.IsForbidden(err) {
		return fmt.Errorf("without a role the answer was %v", err)
	}
	rules := []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"pets.example.com"}, Resources: []string{"pets"}}}
	if _, err := w.admin.typed.RbacV1().Roles(aggregatedNamespace).Create(ctx, &rbac.Role{ObjectMeta: meta.ObjectMeta{Name: "pets"}, Rules: rules}, meta.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbac.RoleBinding{ObjectMeta: meta.ObjectMeta{Name: "pets"}, Subjects: []rbac.Subject{{Kind: "ServiceAccount", Namespace: aggregatedNamespace, Name: "caller"}},
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "pets"}}
	if _, err := w.admin.typed.RbacV1().RoleBindings(aggregatedNamespace).Create(ctx, binding, meta.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, "the caller is let in", get); err != nil {
		return err
	}
	caller.BearerToken += "x"
	if client, err = dynamic.NewForConfig(caller); err != nil {
		return err
	}
	if err := get(ctx); !errors.IsUnauthorized(err) {
		return fmt.Errorf("a token that was changed was answered %v", err)
	}
	return nil
}
