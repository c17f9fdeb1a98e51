package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
)

// pets is an API server as those of metrics are made, with Kubernetes' library: it asks ringwatch who asks and what they may do.
type pets struct {
	listener  net.Listener
	authority []byte
}

const petsPath = "/apis/pets.example.com/v1"

func startPets(ctx context.Context, kubeconfig string) (*pets, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	serving.ServerCert.CertDirectory = ""
	if err := serving.MaybeDefaultWithSelfSignedCerts("pets."+aggregatedNamespace+".svc", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	authority, _ := serving.ServerCert.GeneratedCert.CurrentCertKeyContent()
	scheme := runtime.NewScheme()
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := genericserver.NewRecommendedConfig(serializer.NewCodecFactory(scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.SkipOpenAPIInstallation = true
	if err := serving.WithLoopback().ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = kubeconfig
	if err := authentication.ApplyTo(&config.Authentication, config.SecureServing, nil); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = kubeconfig
	if err := authorization.ApplyTo(&config.Authorization); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	made, err := config.Complete().New("pets", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	made.AggregatedDiscoveryGroupManager.AddGroupVersion(petsOf.Group, apidiscovery.APIVersionDiscovery{
		Version: petsOf.Version,
		Resources: []apidiscovery.APIResourceDiscovery{{Resource: petsOf.Resource, SingularResource: "pet", Verbs: []string{"get"},
			Scope: apidiscovery.ScopeNamespace, ResponseKind: &meta.GroupVersionKind{Group: petsOf.Group, Version: petsOf.Version, Kind: "Pet"}}},
	})
	made.Handler.NonGoRestfulMux.HandleFunc(petsPath, describe)
	made.Handler.NonGoRestfulMux.HandlePrefix(petsPath+"/", http.HandlerFunc(whoAsks))
	go func() { _ = made.PrepareRun().RunWithContext(ctx) }()
	return &pets{listener, authority}, nil
}

func describe(writer http.ResponseWriter, _ *http.Request) {
	answer(writer, meta.APIResourceList{
		TypeMeta: meta.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "pets.example.com/v1",
		APIResources: []meta.APIResource{{Name: "pets", SingularName: "pet", Kind: "Pet", Namespaced: true, Verbs: meta.Verbs{"get"}}},
	})
}

// whoAsks answers with a pet that is called like whoever asks for it.
func whoAsks(writer http.ResponseWriter, asked *http.Request) {
	user, _ := request.UserFrom(asked.Context())
	answer(writer, meta.PartialObjectMetadata{
		TypeMeta:   meta.TypeMeta{Kind: "Pet", APIVersion: "pets.example.com/v1"},
		ObjectMeta: meta.ObjectMeta{Name: "any", Annotations: map[string]string{"user": user.GetName()}},
	})
}

func answer(writer http.ResponseWriter, object any) {
	writer.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(writer).Encode(object); err != nil {
		fmt.Println("pets:", err)
	}
}
