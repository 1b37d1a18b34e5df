// Package ports guards the ports of nodes on the bridges of this host: what a node sends must come from itself. One table of nftables, of the
// family of bridges, holds all ports of all sites. Its sets say what each port may send as; its rules are always the same.
package ports

import (
	"bytes"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// An Identity is what a node may send as on a port.
type Identity struct {
	mac     string // of six bytes
	address string // of four
}

// Identify returns what a node with a MAC and an address with prefix length may send as on a port.
func Identify(port, mac, address string) (Identity, error) {
	m, err := net.ParseMAC(mac)
	a, err2 := netip.ParsePrefix(address)
	if err != nil || err2 != nil || len(m) != 6 || !a.Addr().Is4() {
		return Identity{}, problem.New(problem.Failed, "link %s: %q and %q are no addresses", port, mac, address)
	}
	four := a.Addr().As4()
	return Identity{string(m), string(four[:])}, nil
}

// A Table is the table of this host, as it was when it was opened and as Commit will make it.
type Table struct {
	Held     map[string]Identity // ports that are held to what they may send as
	Existing bool                // the table
	Whole    bool                // and all that shall be in it
	c        *nftables.Conn
	was      map[*nftables.Set]map[string]bool // keys in the table
}

var (
	table   = &nftables.Table{Name: "orrery-ports", Family: nftables.TableFamilyBridge}
	heldSet = &nftables.Set{Table: table, Name: "held", KeyType: nftables.TypeIFName}
	macSet  = &nftables.Set{Table: table, Name: "macs", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr)}
	addressSet = &nftables.Set{Table: table, Name: "addresses", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeIPAddr)}
	ownSet = &nftables.Set{Table: table, Name: "own", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFName, nftables.TypeEtherAddr, nftables.TypeIPAddr)}
	sets = []*nftables.Set{heldSet, macSet, addressSet, ownSet}
)

const prerouting = "prerouting"

func chain() *nftables.Chain {
	open, early := nftables.ChainPolicyAccept, nftables.ChainPriority(-300)
	return &nftables.Chain{
		Name: prerouting, Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: &early, Policy: &open,
	}
}

// Open reads the table, which need not be there.
func Open() (*Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, unusable(err)
	}
	g := &Table{c: c, Held: map[string]Identity{}, was: map[*nftables.Set]map[string]bool{}}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyBridge)
	if err != nil {
		return nil, unusable(err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == table.Name }) {
		return g, nil
	}
	g.Existing = true
	var shall []string
	for _, r := range rules() {
		shall = append(shall, r.why)
	}
	g.Whole = slices.Equal(comments(c), shall)
	for _, s := range sets {
		elements, err := c.GetSetElements(s)
		if err != nil {
			g.Whole = false // somebody has taken it away
			continue
		}
		g.was[s] = map[string]bool{}
		for _, e := range elements {
			g.was[s][string(e.Key)] = true
			if s != ownSet { // which says the same once more
				g.read(s, e.Key)
			}
		}
	}
	return g, nil
}

// comments returns those of the rules that are there; nil if the chain is not, or goes while we look.
func comments(c *nftables.Conn) []string {
	chains, err := c.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(chains, func(c *nftables.Chain) bool {
		return c.Table.Name == table.Name && c.Name == prerouting && c.Hooknum != nil
	})
	if i < 0 {
		return nil
	}
	rules, err := c.GetRules(table, chains[i])
	if err != nil {
		return nil
	}
	var all []string
	for _, r := range rules {
		text, _ := userdata.GetString(r.UserData, userdata.TypeComment)
		all = append(all, text)
	}
	return all
}

func (g *Table) read(s *nftables.Set, key []byte) {
	if len(key) < unix.IFNAMSIZ {
		return
	}
	port := string(bytes.TrimRight(key[:unix.IFNAMSIZ], "\x00"))
	is, rest := g.Held[port], key[unix.IFNAMSIZ:]
	switch {
	case s == macSet && len(rest) >= 6:
		is.mac = string(rest[:6])
	case s == addressSet && len(rest) >= 4:
		is.address = string(rest[:4])
	}
	g.Held[port] = is
}

// keys gives what shall be in the sets.
func (g *Table) keys() map[*nftables.Set]map[string]bool {
	held, macs, addresses, own := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for port, is := range g.Held {
		held[portKey(port)] = true
		macs[portKey(port, is.mac)], addresses[portKey(port, is.address)] = true, true
		own[portKey(port, is.mac, is.address)] = true
	}
	return map[*nftables.Set]map[string]bool{heldSet: held, macSet: macs, addressSet: addresses, ownSet: own}
}

// Commit brings the table, in one transaction, to what is held. Where there is nobody to hold there is none.
func (g *Table) Commit() error {
	if len(g.Held) == 0 && !g.Existing {
		return nil
	}
	keys := g.keys()
	if len(g.Held) == 0 || !g.Whole {
		g.c.AddTable(table) // so that there is one to delete
		g.c.DelTable(table)
		g.was = nil
	}
	if len(g.Held) > 0 && !g.Whole {
		g.c.AddTable(table)
		for _, s := range sets {
			if err := g.c.AddSet(s, nil); err != nil {
				return err
			}
		}
		chain := g.c.AddChain(chain())
		for _, r := range rules() {
			g.c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: r.exprs, UserData: userdata.AppendString(nil, userdata.TypeComment, r.why)})
		}
	}
	if len(g.Held) > 0 {
		for _, s := range sets {
			if err := change(s, g.was[s], keys[s], g.c.SetDeleteElements); err != nil {
				return err
			}
			if err := change(s, keys[s], g.was[s], g.c.SetAddElements); err != nil {
				return err
			}
		}
	}
	if err := g.c.Flush(); err != nil {
		return unusable(err)
	}
	return nil
}

// change does something with the keys that are in one set and not in another, as many at a time as one message takes.
func change(s *nftables.Set, in, notIn map[string]bool, what func(*nftables.Set, []nftables.SetElement) error) error {
	var some []nftables.SetElement
	for key := range in {
		if !notIn[key] {
			some = append(some, nftables.SetElement{Key: []byte(key)})
		}
	}
	for chunk := range slices.Chunk(some, 256) {
		if err := what(s, chunk); err != nil {
			return err
		}
	}
	return nil
}

// portKey gives the key of an element: the name of a port and what it is joined with, each in whole words of four bytes.
func portKey(port string, with ...string) string {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, port)
	for _, w := range with {
		key = append(append(key, w...), make([]byte, -len(w)&3)...)
	}
	return string(key)
}

func unusable(err error) error {
	return problem.New(problem.Unable, "the ports of bridges cannot be guarded: nf_tables of this kernel does not know bridges").Because(err).
		Try("modprobe nf_tables_bridge; or let the nodes of a network send as others, with spoof = true")
}
