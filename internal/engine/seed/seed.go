// Package seed makes the cloud-init seed of a guest that boots a foreign disk image: a NoCloud seed
// on an ISO 9660 file system.
//
// Whoever is root in the guest reads it, and so does, for as long as it is there, any user who may
// read the drive. What is secret in it are the guest's own SSH host keys, by which its first
// visitor knows it: they are in it until the guest has been visited.
package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// A Seed is what a guest is told.
type Seed struct {
	Node      *spec.Node
	Key       string   // line of authorized_keys(5) that lets the host in
	Private   []byte   // half of the SSH host key, as OpenSSH writes it; nil: the guest has it
	Public    string   // half of it
	Hosts     []byte   // hosts(5); nil: it has its own
	Resolvers []string // addresses of name servers
	Search    []string // domains
	Link      Link     // by which the host reaches it
}

// A Link is a network card for the host alone.
type Link struct{ MAC, Address string }

// most bounds a seed: the names of ten thousand nodes fit in it.
const most = 8 << 20

// Image returns the file system, which has the label by which cloud-init finds it.
func (s *Seed) Image() ([]byte, error) {
	user, err := s.user()
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(map[string]string{"instance-id": "orrery-" + s.Node.MachineID,
		"local-hostname": s.Node.Name})
	if err != nil {
		return nil, err
	}
	network, err := json.Marshal(s.network())
	if err != nil {
		return nil, err
	}
	all := image("cidata", map[string][]byte{"meta-data": meta, "user-data": user, "network-config": network})
	if len(all) > most {
		return nil, problem.New(problem.Unable, "node %s: what it is to be told when it boots has %d MiB", s.Node.Name,
			len(all)>>20)
	}
	return all, nil
}

type keys = map[string]any

// user is the part that says who may come in (cloud-config; JSON is YAML).
func (s *Seed) user() ([]byte, error) {
	login := s.Node.Disk.Login
	visitor := keys{"name": login, "ssh_authorized_keys": []string{s.Key}}
	if login != "root" {
		visitor["lock_passwd"], visitor["sudo"], visitor["shell"] = true, "ALL=(ALL) NOPASSWD:ALL", "/bin/sh"
	}
	c := keys{
		"hostname": s.Node.Name, "users": []keys{visitor}, "disable_root": login != "root", "ssh_pwauth": false,
		"manage_etc_hosts": false, "no_ssh_fingerprints": true,
		"updates": keys{"network": keys{"when": []string{"boot"}}}, // its addresses may be others when it boots again
	}
	if s.Private != nil {
		c["ssh_deletekeys"] = true // and no other is made, as there are some
		c["ssh_keys"] = map[string]string{"ed25519_private": string(s.Private), "ed25519_public": s.Public}
	}
	if s.Hosts != nil {
		c["write_files"] = []keys{{"path": "/etc/hosts", "content": string(s.Hosts), "permissions": "0644"}}
	}
	var b bytes.Buffer
	b.WriteString("#cloud-config\n")
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	err := to.Encode(c)
	return b.Bytes(), err
}

// network is the part that gives its cards names and addresses (network config, version 2).
func (s *Seed) network() keys {
	cards := keys{}
	for _, nic := range s.Node.NICs {
		card := keys{
			"match": keys{"macaddress": nic.MAC}, "set-name": nic.Name, "addresses": []netip.Prefix{nic.Address}, "mtu": nic.MTU,
			"dhcp4": false, "accept-ra": false, // on networks of Orrery nobody says either
		}
		if nic.Gateway != "" {
			card["routes"] = []keys{{"to": "0.0.0.0/0", "via": nic.Gateway}}
			if len(s.Resolvers) > 0 {
				servers := keys{"addresses": s.Resolvers}
				if len(s.Search) > 0 { // cloud-init takes no null
					servers["search"] = s.Search
				}
				card["nameservers"] = servers
			}
		}
		cards[nic.Name] = card
	}
	if s.Link != (Link{}) {
		name := fmt.Sprintf("eth%d", len(s.Node.NICs))
		cards[name] = keys{"match": keys{"macaddress": s.Link.MAC}, "set-name": name, "addresses": []string{s.Link.Address},
			"dhcp4": false, "optional": true}
	}
	return keys{"version": 2, "ethernets": cards}
}
