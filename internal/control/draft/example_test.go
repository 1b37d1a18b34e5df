package draft

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// onHostWith makes subnets of the host taken.
func onHostWith(t *testing.T, subnets ...string) {
	t.Helper()
	original := takenSubnets
	t.Cleanup(func() { takenSubnets = original })
	takenSubnets = func() (taken []netip.Prefix) {
		for _, text := range subnets {
			taken = append(taken, netip.MustParsePrefix(text))
		}
		return taken
	}
}

// TestFreeSubnet: a small site gets a subnet that is free, and always the same one on the same host.
func TestFreeSubnet(t *testing.T) {
	subnetOf := func(name string) netip.Prefix {
		t.Helper()
		dir := filepath.Join(t.TempDir(), name)
		if _, err := WriteExample(dir, ""); err != nil {
			t.Fatal(err)
		}
		s, err := sitefile.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s.Networks[0].Subnet
	}
	onHostWith(t)
	karoo := subnetOf("karoo")
	if again := subnetOf("karoo"); again != karoo || subnetOf("lab") == karoo {
		t.Errorf("karoo has %s, then %s", karoo, again)
	}
	onHostWith(t, karoo.String(), "0.0.0.0/32", "::/0")
	second := subnetOf("karoo")
	if second.Overlaps(karoo) {
		t.Errorf("%s is taken", second)
	}
	onHostWith(t, "10.77.0.0/16", "10.78.0.0/15")
	if got := subnetOf("karoo"); !netip.MustParsePrefix("10.80.0.0/16").Overlaps(got) {
		t.Errorf("got %s", got)
	}
	onHostWith(t, "10.0.0.0/8") // and nothing is free
	if got := subnetOf("karoo"); got != karoo {
		t.Errorf("got %s", got)
	}
}

// TestThisHost: this host's own subnets are found.
func TestThisHost(t *testing.T) {
	if taken := takenSubnets(); !slices.ContainsFunc(taken, func(p netip.Prefix) bool {
		return p.Contains(netip.MustParseAddr("127.0.0.1"))
	}) {
		t.Skipf("the loopback interface has no address: %v", taken)
	}
}

// TestCallerKey: the caller's public key gets into the site directory. A private key never does.
func TestCallerKey(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE ada"
	for text, want := range map[string]string{key: key, "-----BEGIN OPENSSH PRIVATE KEY-----\n": "", "root:x\n": ""} {
		home, dir := t.TempDir(), filepath.Join(t.TempDir(), "site")
		t.Setenv("HOME", home)
		if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh/id_ed25519.pub"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths, err := WriteExample(dir, "")
		if err != nil || slices.Contains(within(dir, paths), "keys.pub") != (want != "") {
			t.Errorf("%s: %v %v", text, paths, err)
		}
		s, err := sitefile.Load(dir)
		if err != nil || strings.Join(s.Nodes[0].AuthorizedKeys, "") != want {
			t.Errorf("%s: %+v %v", text, s, err)
		}
	}
}

// TestExamples: every example becomes a site without mistakes and with a name of its own. If its
// subnets are taken, it gets others, also where it has addresses.
func TestExamples(t *testing.T) {
	if all := Examples(); !slices.Contains(all, "quickstart") || slices.Contains(all, "lab") {
		t.Errorf("the examples are %v", all)
	}
	for _, example := range Examples() {
		for _, taken := range [][]string{nil, {"10.8.0.0/16", "10.77.0.0/16"}} {
			onHostWith(t, taken...)
			dir := filepath.Join(t.TempDir(), "own")
			paths, err := WriteCopy(dir, "", example)
			if err != nil {
				t.Errorf("%s: %v", example, err)
				continue
			}
			s, err := sitefile.Load(dir)
			if err != nil || s.Name != "own" || slices.Contains(within(dir, paths), "README.md") {
				t.Errorf("%s: %v %v", example, paths, err)
				continue
			}
			for i := range s.Networks {
				if !isFree(s.Networks[i].Subnet, takenSubnets()) {
					t.Errorf("%s: network %s has %s", example, s.Networks[i].Name, s.Networks[i].Subnet)
				}
			}
			if taken == nil {
				continue
			}
			for _, path := range paths {
				if strings.Contains(read(t, path), "10.8.") {
					t.Errorf("%s: %s has an address of a subnet that is taken", example, path)
				}
			}
		}
	}
}

// TestExampleNotWritten: an unknown example is refused with the nearest, and no file is overwritten.
func TestExampleNotWritten(t *testing.T) {
	dir := t.TempDir()
	if _, err := WriteCopy(dir, "", "quikstart"); problem.ExitCode(err) != int(problem.Usage) ||
		!strings.Contains(err.Error(), "quickstart") {
		t.Errorf("misspelt: %v", err)
	}
	own := filepath.Join(dir, "roles/portal/role.toml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteCopy(dir, "", "quickstart"); problem.ExitCode(err) != int(problem.Usage) || read(t, own) != "mine" ||
		exists(filepath.Join(dir, sitefile.Name)) {
		t.Errorf("a file is there: %v", err)
	}
}
