package rehearsal

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keys are the host keys of all hosts, and the key by which root of any host logs in to the others.
type keys struct {
	User  pair
	Hosts []pair // by number; index 0 is not used
}

// A pair is a key pair in the format of OpenSSH.
type pair struct{ Private, Public string }

func newKeys(of []Place) (keys, error) {
	k := keys{Hosts: make([]pair, len(of)+1)}
	var err error
	if k.User, err = newPair(); err != nil {
		return k, err
	}
	for i := 1; i <= len(of); i++ {
		if k.Hosts[i], err = newPair(); err != nil {
			return k, err
		}
	}
	return k, nil
}

func newPair() (pair, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return pair{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return pair{}, err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return pair{}, err
	}
	return pair{string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(key))}, nil
}

// known returns the host keys of all hosts, by name and address, in the format of known_hosts.
func (k keys) known(places []Place) string {
	var b strings.Builder
	for i, p := range places {
		names := p.names()
		for j := range names {
			if p.Port != 0 {
				names[j] = fmt.Sprintf("[%s]:%d", names[j], p.Port)
			}
		}
		b.WriteString(strings.Join(names, ",") + " " + k.Hosts[i+1].Public)
	}
	return b.String()
}
