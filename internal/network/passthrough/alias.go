package passthrough

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/problem"
)

// AliasPrefix begins the alias of an interface of the host that a node has taken: "orrery passthrough
// NODE INTERFACE up|down MAC SEAL", followed by the alias that it had before. The alias moves with
// the interface. It identifies the interface after a node was killed, when the kernel has returned
// the interface to the host under the name that it had in the node.
const (
	AliasPrefix       = "orrery passthrough "
	FormerAliasPrefix = "orrery lent " // of a node started by a former version
)

// maxAlias is how long an alias can be: IFALIASZ of linux/if.h, minus the final 0.
const maxAlias = 255

// A savedState records an interface's state before a node took it.
type savedState struct {
	node  string // SITE/ID
	name  string
	state string // up or down
	mac   string
	alias string
}

func savedStateOf(link netlink.Link, node string) savedState {
	state := "down"
	if link.Attrs().Flags&net.FlagUp != 0 {
		state = "up"
	}
	return savedState{node: node, name: link.Attrs().Name, state: state, mac: link.Attrs().HardwareAddr.String(),
		alias: Alias(link)}
}

// aliasText returns the alias for the mark. It has a seal because root in the node can give its
// interface any alias. Such an alias must not pass for that of another interface or another node.
func (p savedState) aliasText(link netlink.Link) (string, error) {
	key, err := sealKey()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(AliasPrefix + strings.Join([]string{p.node, p.name, p.state, p.mac, p.seal(link, key),
		p.alias},
		" ")), nil
}

// seal binds the mark to the network card, by its permanent hardware address.
func (p savedState) seal(link netlink.Link, key []byte) string {
	m := hmac.New(sha256.New, key)
	for _, part := range []string{p.node, p.name, p.state, p.mac, p.alias, link.Attrs().PermHWAddr.String()} {
		m.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// readSavedState returns the mark in the alias of an interface, if its seal is valid.
func readSavedState(link netlink.Link) (savedState, bool) {
	rest, ok := cutAliasPrefix(link)
	words := strings.SplitN(rest, " ", 6)
	if !ok || len(words) < 5 {
		return savedState{}, false
	}
	p := savedState{node: words[0], name: words[1], state: words[2], mac: words[3]}
	if len(words) > 5 {
		p.alias = words[5]
	}
	key, err := sealKey()
	return p, err == nil && hmac.Equal([]byte(words[4]), []byte(p.seal(link, key)))
}

// Alias returns the alias that an interface has when no node has taken it.
func Alias(link netlink.Link) string {
	if p, ok := readSavedState(link); ok {
		return p.alias
	}
	if _, ok := cutAliasPrefix(link); ok {
		return ""
	}
	return link.Attrs().Alias
}

// cutAliasPrefix returns the alias without the prefix that marks a taken interface.
func cutAliasPrefix(link netlink.Link) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(link.Attrs().Alias, FormerAliasPrefix); ok {
		return rest, true
	}
	return strings.CutPrefix(link.Attrs().Alias, AliasPrefix)
}

// sealPath is lost when the host boots, and so is every passthrough. Its name comes from a former
// version, so that existing seals stay valid.
var sealPath = "/run/orrery/loans.key"

// sealKey returns the key of this host's seals, and makes it the first time. The caller holds the
// lock, or there are no passthroughs yet.
func sealKey() ([]byte, error) {
	key, err := os.ReadFile(sealPath)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(key) != sha256.Size {
		key = make([]byte, sha256.Size)
		rand.Read(key) //nolint:errcheck // it never fails
		err = os.WriteFile(sealPath, key, 0o600)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the key that signs the records of taken interfaces cannot be used").
			At(sealPath).Because(err).
			Try("remove it while no node with an exclusive interface runs")
	}
	return key, nil
}
