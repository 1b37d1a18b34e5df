package test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
)

// TestNodeSecrets: each node has its own value of a secret, in the format that the site file says, and a certificate
// that other nodes can verify. The values stay the same until they are rotated, and that of a removed node is deleted.
func TestNodeSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-own-secrets", `
[network.lan]
subnet = "10.99.207.0/24"
[image.debian]
suite = "bookworm"
[node."n{1..2}"]
id = 11
roles = ["holder"]
[secret.key]
format = "cephx"
per = "node"
readers = ["holder"]
[secret.tls]
format = "x509"
per = "node"
`, files{
		"roles/holder/role.toml": `
[[secret]]
name = "key"
[[secret]]
name = "tls"
[[file]]
path = "/etc/holder.pem"
template = "holder.pem.tmpl"
[[file]]
path = "/etc/holder.ca"
template = "holder.ca.tmpl"
`,
		"roles/holder/holder.pem.tmpl": "{{ certificate \"tls\" }}{{ private_key \"tls\" }}",
		"roles/holder/holder.ca.tmpl":  "{{ ca \"tls\" }}",
	})
	s.run("up").want(0)
	keys := map[string]string{}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(s.on("n1", "cat", "/etc/holder.ca"))) {
		t.Fatal("the node has no certificate authority")
	}
	for _, node := range []string{"n1", "n2"} {
		keys[node] = s.on(node, "cat", "/etc/orrery/secrets/key")
		if keys[node] != s.value("key@"+node) || len(keys[node]) != 40 {
			t.Errorf("node %s has another key than its host, or one of %d characters", node, len(keys[node]))
		}
		text := []byte(s.on(node, "cat", "/etc/holder.pem"))
		pair, err := tls.X509KeyPair(text, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: node, Roots: roots}); err != nil {
			t.Error(err)
		}
		if got := s.on(node, "stat", "-L", "-c", "%a %U:%G", "/etc/holder.pem"); got != "600 root:root" {
			t.Errorf("the private key of %s has %s", node, got)
		}
	}
	if keys["n1"] == keys["n2"] {
		t.Error("two nodes have the same key")
	}
	s.settled()
	s.run("secret", "rotate", "key", "--node", "n1").want(0)
	if s.on("n1", "cat", "/etc/orrery/secrets/key") == keys["n1"] ||
		s.on("n2", "cat", "/etc/orrery/secrets/key") != keys["n2"] {
		t.Error("the key of n1 is the old one, or that of n2 is not")
	}
	s.run("secret", "ls").want(0, "generate cephx per node", "1-2", "2 of 2 nodes")
	s.edit("site.toml", "n{1..2}", "n{1..1}")
	if plan := s.run("plan").want(10); !strings.Contains(plan.out+plan.errs, "its own value of secret key is deleted") {
		t.Errorf("the plan does not say what is lost: %s%s", plan.out, plan.errs)
	}
	s.run("up").want(0)
	if entries, err := os.ReadDir(s.dirs.Secrets(s.name)); err != nil || len(entries) != 2 {
		t.Errorf("the host stores %v, %v", entries, err)
	}
	s.settled()
}
