package secret

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/render"
	"orrery/internal/site/secretspec"
)

// certified returns a keyring with the certificate of a node, whose clock shows the given time.
func certified(dirs host.Dirs, now time.Time) *Keyring {
	s := siteWith(site.Secret{Name: "tls", Generate: 32, Format: secretspec.X509, Per: secretspec.PerNode})
	s.Nodes[0].NICs = []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.1.0.101"),
		IPv6: []netip.Addr{netip.MustParseAddr("2001:db8::11")}}}
	k := NewKeyring(s, dirs)
	k.Now = func() time.Time { return now }
	return k
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestCertificate: a node gets a key and a certificate for its names and addresses, which is valid according to the
// site's authority. Only root of the control host can read the authority.
func TestCertificate(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	k := certified(dirs, noon)
	if _, err := k.Authority(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	value, err := k.Value(t.Context(), "tls@db")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(AuthorityPath(dirs, "karoo")); err != nil || info.Mode() != 0o600 {
		t.Error(info, err)
	}
	part := func(name string) []byte {
		t.Helper()
		text, err := k.Derive("tls@db", value, name)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(text)
	}
	pair, err := tls.X509KeyPair(part(render.Certificate), part(render.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	ca := part(render.CA)
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority")
	}
	for name, want := range map[string]bool{"db": true, "db.karoo": true, "10.1.0.101": true, "2001:db8::11": true,
		"web": false, "karoo": false, "10.1.0.102": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: noon,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if pair.Leaf.IsCA {
		t.Error("a node can sign certificates")
	}
	if strings.Count(value, "BEGIN PRIVATE KEY") != 1 {
		t.Error("the value has another private key than that of the node")
	}
	again, err := k.Value(t.Context(), "tls@web")
	if err != nil || again == value {
		t.Error("two nodes have the same key", err)
	}
	other := certified(host.Dirs{State: t.TempDir()}, noon)
	if value, err = other.Value(t.Context(), "tls@db"); err != nil {
		t.Fatal(err)
	}
	if text, err := other.Derive("tls@db", value, render.CA); err != nil || text == string(ca) {
		t.Error("two sites have the same authority", err)
	}
}

// TestRenewal: a certificate is renewed when less than a third of its validity is left, or when it does not fit any
// more. When the authority is renewed, nodes trust the former one as long as it is valid.
func TestRenewal(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	k := certified(dirs, noon)
	if _, err := k.Value(t.Context(), "tls@db"); err != nil {
		t.Fatal(err)
	}
	a, err := k.Authority()
	if err != nil {
		t.Fatal(err)
	}
	stored := k.Stored("tls@db").Value
	db := &k.sites[0].Nodes[0]
	why := func(stored string, n *site.Node, after time.Duration) string {
		return a.RenewalReason(stored, n, "karoo", noon.Add(after))
	}
	const day = 24 * time.Hour
	moved := *db
	moved.NICs = []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.1.0.7")}}
	strange := certified(host.Dirs{State: t.TempDir()}, noon)
	if _, err := strange.Value(t.Context(), "tls@db"); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ got, want string }{
		"new":                {why(stored, db, 0), ""},
		"after eight months": {why(stored, db, 240*day), ""},
		"after nine months":  {why(stored, db, 270*day), "its certificate is valid until 2027-03-01"},
		"expired":            {why(stored, db, 400*day), "its certificate is valid until 2027-03-01"},
		"another address":    {why(stored, &moved, 0), "the node has other names or addresses"},
		"another authority":  {why(strange.Stored("tls@db").Value, db, 0), "its certificate is of another certificate authority"},
		"not readable":       {why("abc", db, 0), "its certificate cannot be read"},
		"no certificate":     {why(storePEM([]byte("x")), db, 0), "its certificate cannot be read"},
		"an old authority":   {why(stored, db, 2600*day), "the certificate authority is renewed"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, not %q", what, c.got, c.want)
		}
	}
	later := certified(dirs, noon.Add(2600*day))
	fresh, err := later.Generate(&site.Secret{Name: "tls", Format: secretspec.X509, Per: secretspec.PerNode}, "db")
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := later.Authority()
	if err != nil || renewed.all[0].Equal(a.all[0]) || len(renewed.all) != 2 || !renewed.all[1].Equal(a.all[0]) {
		t.Errorf("%d certificates, %v", len(renewed.all), err)
	}
	if why := renewed.RenewalReason(fresh, db, "karoo", noon.Add(2600*day)); why != "" {
		t.Error(why)
	}
	if plain, _ := (Stored{Value: fresh}).Plain(); strings.Count(plain, "BEGIN CERTIFICATE") != 3 {
		t.Error("the node does not get both authorities")
	}
}

// TestDamagedAuthority: an authority that cannot be read is an error, and no other one is made.
func TestDamagedAuthority(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	err := host.WriteFile(host.File{Path: AuthorityPath(dirs, "karoo"), Content: []byte("x"), Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	k := certified(dirs, noon)
	if _, err := k.Value(t.Context(), "tls@db"); err == nil || !strings.Contains(err.Error(), "authority.pem") {
		t.Error(err)
	}
	if _, err := k.Generate(&site.Secret{Name: "tls", Format: secretspec.X509}, "nobody"); err == nil {
		t.Error("a node that is not declared has a certificate")
	}
}
