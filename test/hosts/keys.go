package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"
)

// keys are those of all hosts, and the one by which root of any host comes to every other.
type keys struct {
	User  pair
	Hosts []pair // by number; 0 is none
}

// A pair of keys, as OpenSSH writes them.
type pair struct{ Private, Public string }

func newKeys(count int) (keys, error) {
	k := keys{Hosts: make([]pair, count+1)}
	var err error
	if k.User, err = newPair(); err != nil {
		return k, err
	}
	for i := 1; i <= count; i++ {
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

// known gives the keys of all hosts, by name and address.
func (k keys) known() string {
	var b strings.Builder
	for i := 1; i < len(k.Hosts); i++ {
		b.WriteString(NameOf(i) + "," + AddressOf(i) + " " + k.Hosts[i].Public)
	}
	return b.String()
}
