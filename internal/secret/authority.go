package secret

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Validity of certificates. A third of it before the end they are renewed.
const (
	authorityValidity   = 10 * 365 * 24 * time.Hour
	certificateValidity = 365 * 24 * time.Hour
	clockSkew           = time.Hour // by which clocks of nodes may be behind
)

// maxAuthorities is the maximum number of certificates of former authorities that nodes still get.
const maxAuthorities = 4

// An Authority is the certificate authority of a site or a twin. Its key is on the control host that made it,
// and on no other: with it, anyone could pass for any node of the site.
type Authority struct {
	path string
	key  *ecdsa.PrivateKey
	all  []*x509.Certificate // the current one, then former ones that are valid
}

// AuthorityFile is the name of the file of an authority.
const AuthorityFile = "authority.pem"

// AuthorityPath returns the path of the authority of a site on its control host.
func AuthorityPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Keys(key), AuthorityFile)
}

// OpenAuthority returns the authority of a site on this control host, or fs.ErrNotExist.
func OpenAuthority(dirs host.Dirs, key string) (*Authority, error) {
	path := AuthorityPath(dirs, key)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secret, all, err := parseBundle(text)
	if err != nil {
		return nil, problem.New(problem.Failed, "the certificate authority of site %s cannot be read", key).At(path).Because(err).
			Try("copy it from a backup of the file, or remove it: orrery up then makes another one and all certificates anew")
	}
	return &Authority{path, secret, all}, nil
}

// NewAuthority makes the authority of a site, in place of the former one if former is not nil.
func NewAuthority(dirs host.Dirs, key string, now time.Time, former *Authority) (*Authority, error) {
	a := &Authority{path: AuthorityPath(dirs, key)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Orrery site " + key},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityValidity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	made, err := sign(t, t, a.key, a.key)
	if err != nil {
		return nil, err
	}
	a.all = []*x509.Certificate{made}
	if former != nil {
		for _, c := range former.all {
			if now.Before(c.NotAfter) && len(a.all) < maxAuthorities {
				a.all = append(a.all, c)
			}
		}
	}
	text, err := bundle(a.key, a.all...)
	if err != nil {
		return nil, err
	}
	// the directory also has known_hosts, which every user may read
	return a, host.WriteFile(host.File{Path: a.path, Content: text, Mode: 0o600})
}

// currentAuthority returns the authority of a site. It makes one if there is none, or if it must be renewed.
func currentAuthority(dirs host.Dirs, key string, now time.Time) (*Authority, error) {
	a, err := OpenAuthority(dirs, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NewAuthority(dirs, key, now, nil)
	case err != nil:
		return nil, err
	case IsDue(a.all[0], now):
		return NewAuthority(dirs, key, now, a)
	}
	return a, nil
}

// IsDue reports whether less than a third of the validity of a certificate is left.
func IsDue(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/3
}

// IsDue reports whether the value is a certificate with its key that must be renewed.
func (s Stored) IsDue(now time.Time) bool {
	_, all, err := openBundle(s.Value)
	return err == nil && IsDue(all[0], now)
}

// issue returns a new private key and a certificate for a node, in the form in which hosts store a secret.
func (a *Authority) issue(n *site.Node, siteName string, now time.Time) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: n.Name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateValidity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	t.DNSNames, t.IPAddresses = subjects(n, siteName)
	made, err := sign(t, a.all[0], key, a.key)
	if err != nil {
		return "", err
	}
	text, err := bundle(key, append([]*x509.Certificate{made}, a.all...)...)
	return storePEM(text), err
}

// subjects returns the names and addresses of a node that its certificate has.
func subjects(n *site.Node, siteName string) (names []string, addresses []net.IP) {
	for _, name := range append([]string{n.Name}, n.Aliases...) {
		names = append(names, name, name+"."+siteName)
	}
	for _, nic := range n.NICs {
		if nic.Address.IsValid() {
			addresses = append(addresses, nic.Address.AsSlice())
		}
		for _, a := range nic.IPv6 {
			addresses = append(addresses, a.AsSlice())
		}
	}
	return names, addresses
}

// RenewalReason returns why the certificate of a node must be renewed, or "".
func (a *Authority) RenewalReason(stored string, n *site.Node, siteName string, now time.Time) string {
	_, all, err := openBundle(stored)
	if err != nil {
		return "its certificate cannot be read"
	}
	names, addresses := subjects(n, siteName)
	same := slices.Equal(all[0].DNSNames, names) &&
		slices.EqualFunc(all[0].IPAddresses, addresses, func(a, b net.IP) bool { return a.Equal(b) })
	switch {
	case IsDue(a.all[0], now):
		return "the certificate authority is renewed"
	case all[0].CheckSignatureFrom(a.all[0]) != nil:
		return "its certificate is of another certificate authority"
	case IsDue(all[0], now):
		return "its certificate is valid until " + all[0].NotAfter.UTC().Format(time.DateOnly)
	case !same:
		return "the node has other names or addresses"
	}
	return ""
}

func sign(t, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// bundle returns a private key and certificates as PEM.
func bundle(key *ecdsa.PrivateKey, all ...*x509.Certificate) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})
	for _, c := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
	}
	return text, nil
}

// openBundle returns the bundle that hosts store as a secret, and its certificates.
func openBundle(stored string) (text []byte, all []*x509.Certificate, err error) {
	if text, err = openPEM(stored); err == nil {
		_, all, err = parseBundle(text)
	}
	return text, all, err
}

// parseBundle returns the private key and the certificates of a bundle, of which there is at least one.
func parseBundle(text []byte) (*ecdsa.PrivateKey, []*x509.Certificate, error) {
	first, rest := pem.Decode(text)
	if first == nil || first.Type != keyBlock {
		return nil, nil, errors.New("it does not begin with a private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(first.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, errors.New("its key is not of ECDSA")
	}
	var all []*x509.Certificate
	for len(bytes.TrimSpace(rest)) > 0 {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil || b.Type != certificateBlock || len(all) > maxAuthorities {
			return nil, nil, errors.New("what follows the private key is no list of certificates")
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, nil, errors.New("it has no certificate")
	}
	if !key.PublicKey.Equal(all[0].PublicKey) {
		return nil, nil, errors.New("its certificate is not of its key")
	}
	return key, all, nil
}

// pemBlocks returns the blocks of PEM in text that are of one type.
func pemBlocks(text, of string) (all []string) {
	for b, rest := pem.Decode([]byte(text)); b != nil; b, rest = pem.Decode(rest) {
		if b.Type == of {
			all = append(all, string(pem.EncodeToMemory(b)))
		}
	}
	return all
}
