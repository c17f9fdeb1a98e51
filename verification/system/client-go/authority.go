package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 24 * time.Hour

// sign makes a certificate and its key, signed by an authority or, without one, by itself.
func sign(authority *tls.Certificate, subject pkix.Name) (certificate, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	issuer, issuerKey := template, any(own)
	if authority == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		issuer, issuerKey = authority.Leaf, authority.PrivateKey
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, issuer, &own.PublicKey, issuerKey)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

const proxyName = "front-proxy-client"

// proxyFlags have the server prove to API servers behind it that it is who passes requests on.
func proxyFlags(folder string) ([]string, error) {
	certificate, key, err := sign(nil, pkix.Name{CommonName: "front-proxy"})
	if err != nil {
		return nil, err
	}
	authority, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	clientCertificate, clientKey, err := sign(&authority, pkix.Name{CommonName: proxyName})
	if err != nil {
		return nil, err
	}
	flags := []string{"--requestheader-allowed-names=" + proxyName, "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"}
	for flag, content := range map[string][]byte{"requestheader-client-ca-file": certificate, "proxy-client-cert-file": clientCertificate, "proxy-client-key-file": clientKey} {
		path := filepath.Join(folder, flag)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
		flags = append(flags, "--"+flag+"="+path)
	}
	return flags, nil
}
