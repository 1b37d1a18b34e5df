package foreign

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

func some() *Seed {
	return &Seed{
		Node: &spec.Node{
			Name: "db", MachineID: "0123", Disk: site.Disk{Login: "debian"},
			NICs: []spec.NIC{{Name: "eth0", MAC: "02:00:00:00:00:01", Address: netip.MustParsePrefix("10.1.0.2/24"),
				Gateway: "10.1.0.1", MTU: 1500}, {Name: "eth1", MAC: "02:00:00:00:00:02",
				Address: netip.MustParsePrefix("10.2.0.2/24"), MTU: 9000}},
		},
		Key: "ssh-ed25519 AAAA mine", Private: []byte("-----BEGIN…\n"), Public: "ssh-ed25519 BBBB db\n",
		Hosts: []byte("10.1.0.2 db\n"), Resolvers: []string{"10.1.0.1"},
		Link: Link{"52:54:00:00:00:01", "169.254.77.15/24"},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files reads the directory of an image as a guest does.
func files(t *testing.T, all []byte) map[string]string {
	t.Helper()
	le := func(at int) int { return int(all[at]) | int(all[at+1])<<8 | int(all[at+2])<<16 | int(all[at+3])<<24 }
	if string(all[16*sector+1:16*sector+6]) != "CD001" || !strings.HasPrefix(string(all[16*sector+40:]), "cidata ") ||
		le(16*sector+80)*sector != len(all) {
		t.Fatal("no volume")
	}
	found := map[string]string{}
	for at := le(16*sector+156+2) * sector; all[at] != 0; at += int(all[at]) {
		name := string(all[at+33 : at+33+int(all[at+32])])
		begin := le(at+2) * sector
		if all[at+25] == 0 {
			found[name] = string(all[begin : begin+le(at+10)])
		}
	}
	return found
}

// TestSeedImage: a guest learns its name, the users with access, its host key, and its addresses.
func TestSeedImage(t *testing.T) {
	all, err := some().Image()
	must(t, err)
	got := files(t, all)
	var user struct {
		Hostname string
		Users    []map[string]any
		Keys     map[string]string   `json:"ssh_keys"`
		Write    []map[string]string `json:"write_files"`
	}
	text, ok := strings.CutPrefix(got["user-data"], "#cloud-config\n")
	if !ok {
		t.Error(got["user-data"])
	}
	must(t, json.Unmarshal([]byte(text), &user))
	if strings.Contains(text, "[]") || strings.Contains(text, "null") {
		t.Errorf("cloud-init calls an empty list and null invalid: %s", text)
	}
	if user.Hostname != "db" || user.Users[0]["name"] != "debian" || user.Users[0]["sudo"] != "ALL=(ALL) NOPASSWD:ALL" ||
		user.Keys["ed25519_private"] != "-----BEGIN…\n" || user.Write[0]["content"] != "10.1.0.2 db\n" {
		t.Error(text)
	}
	var network struct {
		Ethernets map[string]struct {
			Match     struct{ MACAddress string }
			Addresses []string
			Routes    []map[string]string
			MTU       int
			AcceptRA  *bool `json:"accept-ra"`
		}
	}
	must(t, json.Unmarshal([]byte(got["network-config"]), &network))
	if e := network.Ethernets; e["eth0"].Match.MACAddress != "02:00:00:00:00:01" ||
		e["eth0"].Routes[0]["via"] != "10.1.0.1" || e["eth1"].MTU != 9000 || e["eth1"].Routes != nil ||
		e["eth2"].Addresses[0] != "169.254.77.15/24" {
		t.Error(got["network-config"])
	}
	if ra := network.Ethernets["eth0"].AcceptRA; ra == nil || *ra {
		t.Error("it would believe router advertisements: " + got["network-config"])
	}
	if strings.Contains(got["network-config"], "null") || strings.Contains(got["user-data"], "null") {
		t.Error("there is a null, on which cloud-init fails")
	}
	if !strings.Contains(got["meta-data"], `"instance-id":"orrery-0123"`) {
		t.Error(got["meta-data"])
	}
}

// TestNoSecret: after the first login, the seed contains no private key.
//
// Promise (Virtual machines): Once a guest has its SSH host keys, its seed has them no more.
func TestNoSecret(t *testing.T) {
	s := some()
	s.Private = nil
	all, err := s.Image()
	must(t, err)
	if bytes.Contains(all, []byte("BEGIN")) || bytes.Contains(all, []byte("ssh_keys")) {
		t.Error("there is a key in it")
	}
}

// TestSeedRoot: if the login is root, the key is root's.
func TestSeedRoot(t *testing.T) {
	s := some()
	s.Node.Disk.Login = "root"
	all, err := s.Image()
	must(t, err)
	if text := files(t, all)["user-data"]; !strings.Contains(text, `"disable_root":false`) ||
		strings.Contains(text, "sudo") {
		t.Error(text)
	}
}

// TestReadSeed: other programs can read the image.
func TestReadSeed(t *testing.T) {
	bsdtar := need.Program(t, "bsdtar")
	all, err := some().Image()
	must(t, err)
	at := filepath.Join(t.TempDir(), "seed.iso")
	must(t, os.WriteFile(at, all, 0o600))
	out, err := exec.Command(bsdtar, "-tf", at).CombinedOutput() //nolint:gosec // a test
	if err != nil || string(out) != ".\nmeta-data\nnetwork-config\nuser-data\n" {
		t.Errorf("%v: %s", err, out)
	}
	out, err = exec.Command(bsdtar, "-xOf", at, "user-data").CombinedOutput() //nolint:gosec // a test
	if err != nil || string(out) != files(t, all)["user-data"] || !strings.HasPrefix(string(out), "#cloud-config") {
		t.Errorf("%v: %s", err, out)
	}
}
