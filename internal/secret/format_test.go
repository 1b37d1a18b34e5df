package secret

import (
	"encoding/base64"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/render"
	"orrery/internal/site/secretspec"
)

// siteWith returns a site with a node and secrets.
func siteWith(secrets ...site.Secret) *site.Site {
	return &site.Site{Name: "karoo", Secrets: secrets, Nodes: []site.Node{{Name: "db"}, {Name: "web"}}}
}

// TestFormats: a generated value is stored, sent and read in the form that its format says, and each node has its
// own. A value in one format is refused in all others, except that hosts may have any letters and digits.
func TestFormats(t *testing.T) {
	for _, format := range append([]string{""}, secretspec.Formats...) {
		x := site.Secret{Name: "x", Generate: 24, Format: format, Per: secretspec.PerNode}
		dirs := host.Dirs{State: t.TempDir()}
		values := map[string]bool{}
		for _, node := range []string{"db", "web"} {
			v, err := NewKeyring(siteWith(x), dirs).Value(t.Context(), secretspec.Name(&x, node))
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			again, err := NewKeyring(siteWith(x), dirs).Value(t.Context(), secretspec.Name(&x, node))
			if values[v] || v != again || err != nil {
				t.Errorf("%s: two nodes have the value %q, or it is not stored: %v", format, v, err)
			}
			values[v] = true
			stored, err := (Store{dirs.Secrets("karoo")}).Read(secretspec.Name(&x, node))
			if err != nil || stored.Generation != 1 || !ValidGenerated(stored.Value) || strings.Contains(stored.Value, "\n") {
				t.Errorf("%s: stored is %+v, %v", format, stored, err)
			}
			for _, other := range secretspec.Formats {
				if other == secretspec.Base64 && other != format { // some other values are base64, too
					continue
				}
				if err := HasFormat(&site.Secret{Name: "x", Format: other}, stored.Value); (err == nil) != (other == format) {
					t.Errorf("%q in the format %s: %v", stored.Value, other, err)
				} else if err != nil && !problem.Is(err, problem.Surprise) {
					t.Error(err)
				}
			}
		}
	}
}

// TestFormsOfValues: the formats are those that programs read.
func TestFormsOfValues(t *testing.T) {
	k := NewKeyring(siteWith(), host.Dirs{})
	value := func(format string) string {
		t.Helper()
		v, err := k.Generate(&site.Secret{Name: "x", Generate: 20, Format: format}, "")
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Stored{Value: v}.Plain()
		if err != nil {
			t.Fatal(err)
		}
		return plain
	}
	if b, err := hex.DecodeString(value(secretspec.Hex)); len(b) != 20 || err != nil {
		t.Error(b, err)
	}
	if b, err := base64.StdEncoding.DecodeString(value(secretspec.Base64)); len(b) != 20 || err != nil {
		t.Error(b, err)
	}
	if v := value(secretspec.UUID); len(v) != 36 || v[14] != '4' || !strings.ContainsRune("89ab", rune(v[19])) {
		t.Error(v)
	}
	if v := cephKey(time.Unix(1_700_000_000, 5), make([]byte, 16)); v != "AQAA8VNlBQAAABAAAAAAAAAAAAAAAAAAAAAAAA==" {
		t.Error(v)
	}
	if v := value(secretspec.CephX); len(v) != 40 || !strings.HasPrefix(v, "AQ") {
		t.Error(v)
	}
	key, err := ssh.ParsePrivateKey([]byte(value(secretspec.SSH)))
	if err != nil || key.PublicKey().Type() != ssh.KeyAlgoED25519 {
		t.Error(err)
	}
}

// TestHostileForms: what a host sends as a key may contain no text besides the key, because programs on nodes of
// other hosts would read it.
//
// Promise (Other hosts): What a host sends as a key or a certificate contains no other text.
func TestHostileForms(t *testing.T) {
	stored, err := sshKey("x")
	if err != nil {
		t.Fatal(err)
	}
	text, err := openPEM(stored)
	if err != nil {
		t.Fatal(err)
	}
	x := &site.Secret{Name: "x", Format: secretspec.SSH}
	if err := HasFormat(x, storePEM(text)); err != nil {
		t.Error(err)
	}
	for what, hostile := range map[string]string{
		"before": "root::0:0\n" + string(text), "after": string(text) + "root::0:0\n",
		"a header": strings.Replace(string(text), "KEY-----\n", "KEY-----\nA: b\n\n", 1), "nothing": "",
		"no key": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
		"twice":  string(text) + string(text),
	} {
		if err := HasFormat(x, storePEM([]byte(hostile))); (err == nil) != (what == "twice") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, format := range []string{"", secretspec.Hex, secretspec.Base64} {
		if HasFormat(&site.Secret{Name: "x", Format: format}, stored) == nil {
			t.Errorf("%q allows PEM", format)
		}
	}
}

// TestDerived: templates get what is worked out of a secret.
func TestDerived(t *testing.T) {
	k := NewKeyring(siteWith(), host.Dirs{State: filepath.Join(t.TempDir(), "state")})
	derive := func(value, part string) string {
		t.Helper()
		text, err := k.Derive("x@db", value, part)
		if err != nil {
			t.Fatal(part, err)
		}
		return text
	}
	if got := derive("abc", render.Whole); got != "abc" {
		t.Error(got)
	}
	if got := derive("abc", render.Fingerprint); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(got)
	}
	salt, _ := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	const example = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" +
		"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got, err := scram("pencil", salt); got != example || err != nil { // RFC 7677
		t.Error(got, err)
	}
	verifier := derive("pencil", render.SCRAM)
	if verifier != derive("pencil", render.SCRAM) || !strings.HasPrefix(verifier, "SCRAM-SHA-256$4096:") {
		t.Error(verifier)
	}
	if got := k.Redact("it is " + verifier); got != "it is <secret x@db scram>" {
		t.Error(got)
	}
	if other, _ := k.Derive("x@web", "pencil", render.SCRAM); other == verifier {
		t.Error("two nodes have the same salt")
	}
	if _, err := k.Derive("x", "pässword", render.SCRAM); err == nil {
		t.Error("a password that is not ASCII has a verifier")
	}
	stored, err := sshKey("x@db")
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := Stored{Value: stored}.Plain()
	public := derive(plain, render.PublicKey)
	parsed, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(public))
	if err != nil || comment != "x@db" || ssh.FingerprintSHA256(parsed) != derive(plain, render.Fingerprint) {
		t.Error(public, err)
	}
	for _, part := range []string{render.PublicKey, render.PrivateKey, render.Certificate, render.CA, "other"} {
		if text, err := k.Derive("x", "abc", part); err == nil {
			t.Errorf("%s of a password: %q", part, text)
		}
	}
}
