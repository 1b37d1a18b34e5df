package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// A Seed is a cloud-init seed for a guest that boots a foreign disk: its settings, as a NoCloud seed
// on an ISO 9660 file system.
//
// Root in the guest can read it, and as long as it is there, so can any user who may read the
// drive. The secret in it is the guest's own SSH host key, by which the host recognizes the guest.
// It is in the seed until the host has logged in once.
type Seed struct {
	Node      *spec.Node
	Key       string   // line of authorized_keys(5) for the host's key
	Private   []byte   // private half of the SSH host key in OpenSSH's format, or nil if the guest has it
	Public    string   // public half of the SSH host key
	Hosts     []byte   // hosts(5), or nil to leave the guest's own
	Resolvers []string // addresses of name servers
	Search    []string // domains
	Link      Link     // the card through which the host reaches the guest
}

// A Link is a network card for the host alone.
type Link struct{ MAC, Address string }

// maxSeedBytes limits the size of a seed. The names of ten thousand nodes fit.
const maxSeedBytes = 8 << 20

// Image returns the file system, with the label by which cloud-init finds it.
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
	all := isoImage("cidata", map[string][]byte{"meta-data": meta, "user-data": user, "network-config": network})
	if len(all) > maxSeedBytes {
		return nil, problem.New(problem.Unable, "node %s: its boot data has %d MiB", s.Node.Name,
			len(all)>>20)
	}
	return all, nil
}

type keys = map[string]any

// user returns the user-data with the host name, users and keys (cloud-config; JSON is YAML).
func (s *Seed) user() ([]byte, error) {
	login := s.Node.Disk.Login
	visitor := keys{"name": login, "ssh_authorized_keys": []string{s.Key}}
	if login != "root" {
		visitor["lock_passwd"], visitor["sudo"], visitor["shell"] = true, "ALL=(ALL) NOPASSWD:ALL", "/bin/sh"
	}
	c := keys{
		"hostname": s.Node.Name, "users": []keys{visitor}, "disable_root": login != "root", "ssh_pwauth": false,
		"manage_etc_hosts": false, "no_ssh_fingerprints": true,
		"updates": keys{"network": keys{"when": []string{"boot"}}}, // the addresses may change before the next boot
	}
	if s.Private != nil {
		c["ssh_deletekeys"] = true // replace the guest's host keys by the given one
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

// network returns the network-config with the names and addresses of cards (version 2).
func (s *Seed) network() keys {
	cards := keys{}
	for _, nic := range s.Node.NICs {
		card := keys{
			"match": keys{"macaddress": nic.MAC}, "set-name": nic.Name, "addresses": []netip.Prefix{nic.Address}, "mtu": nic.MTU,
			"dhcp4": false, "accept-ra": false, // Orrery's networks have neither DHCP nor router advertisements
		}
		if nic.Gateway != "" {
			card["routes"] = []keys{{"to": "0.0.0.0/0", "via": nic.Gateway}}
			if len(s.Resolvers) > 0 {
				servers := keys{"addresses": s.Resolvers}
				if len(s.Search) > 0 { // cloud-init rejects null
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
