package ports

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// A Table is this host's table, as it was when it was opened and as Commit will write it.
type Table struct {
	Held     map[string]Identity // ports that are restricted to their identities
	Existing bool                // whether the table exists
	Whole    bool                // whether the table has all its rules and elements
	was      map[string]elements // elements in the kernel's table, by set
}

// elements maps the key of each element of a set to its comment.
type elements map[string]string

// maxElements limits each set. The kernel stores a set with a declared size in a hash table of
// fixed size, and lists it consistently. A set without a size grows and is rehashed later. A list
// made during a rehash lacks some elements and repeats others (nft_rhash and nft_hash,
// net/netfilter/nft_set_hash.c).
const maxElements = 16384

var table = &nftables.Table{Name: "orrery-ports", Family: nftables.TableFamilyBridge}

const prerouting = "prerouting"

// kernelChain returns a chain in the kernel's form. Only the first chain is attached to a hook.
func (c chain) kernelChain() *nftables.Chain {
	k := &nftables.Chain{Name: c.name, Table: table}
	if c.name == prerouting {
		open, early := nftables.ChainPolicyAccept, nftables.ChainPriority(-300)
		k.Type, k.Hooknum = nftables.ChainTypeFilter, nftables.ChainHookPrerouting
		k.Priority, k.Policy = &early, &open
	}
	return k
}

func (s set) kernelSet() *nftables.Set {
	return &nftables.Set{
		Table: table, Name: s.name, Concatenation: len(s.fields) > 1, KeyType: s.keyType(),
		KeyByteOrder: binaryutil.NativeEndian, // nft(8) displays names by it
		Size:         maxElements,
		Dynamic:      s.name == holding.name, HasTimeout: s.name == holding.name,
	}
}

// Open reads the table, which need not exist.
func Open() (*Table, error) { return readConsistent(readOnce) }

func readOnce() (*Table, error) {
	c, err := nftables.New(nftables.AsLasting()) // one socket for all requests
	if err != nil {
		return nil, tableError(err)
	}
	defer func() { _ = c.CloseLasting() }()
	g := &Table{Held: map[string]Identity{}, was: map[string]elements{}}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyBridge)
	if err != nil {
		return nil, tableError(err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == table.Name }) {
		return g, nil
	}
	g.Existing = true
	g.Whole = slices.Equal(comments(c), allComments())
	for _, s := range sets {
		found, err := c.GetSetElements(s.kernelSet())
		if err != nil {
			g.Whole = false // the set was removed, or a former version made the table
			continue
		}
		g.was[s.name] = elements{}
		for _, e := range found {
			g.was[s.name][string(e.Key)] = e.Comment
			g.read(s, e)
		}
	}
	// Another program may have changed the sets.
	maps.DeleteFunc(g.Held, func(port string, _ Identity) bool {
		_, ok := g.was[held.name][portKey(port)]
		return !ok
	})
	for name, keys := range g.keys() {
		g.Whole = g.Whole && maps.Equal(keys, g.was[name])
	}
	return g, nil
}

// allComments returns the comments that the rules must have, each with its chain.
var allComments = sync.OnceValue(func() []string {
	var all []string
	for _, c := range chains {
		for _, r := range c.rules {
			all = append(all, c.name+" "+r.comment())
		}
	}
	return all
})

// comments returns the comments of the existing rules. It returns nil if a chain is missing or is
// removed in between.
func comments(c *nftables.Conn) []string {
	existing, err := c.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return nil
	}
	var all []string
	for _, want := range chains {
		i := slices.IndexFunc(existing, func(c *nftables.Chain) bool {
			return c.Table.Name == table.Name && c.Name == want.name && (c.Hooknum != nil) == (c.Name == prerouting)
		})
		if i < 0 {
			return nil
		}
		rules, err := c.GetRules(table, existing[i])
		if err != nil {
			return nil
		}
		for _, r := range rules {
			text, _ := userdata.GetString(r.UserData, userdata.TypeComment)
			all = append(all, want.name+" "+text)
		}
	}
	return all
}

// read adds an element of a set to Held. The set own contains nothing that other sets do not.
func (g *Table) read(s set, e nftables.SetElement) {
	if len(e.Key) < unix.IFNAMSIZ {
		return
	}
	port := string(bytes.TrimRight(e.Key[:unix.IFNAMSIZ], "\x00"))
	as, rest := g.Held[port], e.Key[unix.IFNAMSIZ:]
	switch {
	case s.name == held.name:
		as.site, _, _ = strings.Cut(e.Comment, " ")
	case s.name == macs.name && len(rest) >= 6:
		as.mac = string(rest[:6])
	case s.name == addresses.name && len(rest) >= 4:
		as.addresses = append(as.addresses, string(rest[:4]))
	case s.name == movingARP.name && len(rest) >= 4:
		as.moving = append(as.moving, string(rest[:4]))
	case s.name == own6.name && len(rest) >= 16:
		as.sixes = append(as.sixes, string(rest[:16]))
	case s.name == protocols.name && len(rest) >= 2:
		as.protocols = append(as.protocols, string(rest[:2]))
	}
	g.Held[port] = as
}

// keys returns the elements that the sets must have.
func (g *Table) keys() map[string]elements {
	all := map[string]elements{}
	for _, s := range sets {
		all[s.name] = elements{}
	}
	for port, as := range g.Held {
		for name, keys := range as.keys(port) {
			for _, key := range keys {
				all[name][key] = ""
			}
		}
		all[held.name][portKey(port)] = as.comment(port)
	}
	return all
}

// Commit updates the kernel's table to match Held, in one transaction. If Held is empty, it removes
// the table.
func (g *Table) Commit() error {
	if len(g.Held) == 0 && !g.Existing {
		return nil
	}
	c, err := nftables.New(nftables.WithSockOptions(setSendBuffer))
	if err != nil {
		return tableError(err)
	}
	keys := g.keys()
	if len(g.Held) == 0 || !g.Whole {
		c.AddTable(table) // so that there is one to delete
		c.DelTable(table)
		g.was = nil
	}
	if len(g.Held) > 0 && !g.Whole {
		if err := create(c); err != nil {
			return err
		}
	}
	if len(g.Held) > 0 {
		for _, s := range sets {
			if err := applyDiff(s.kernelSet(), g.was[s.name], keys[s.name], c.SetDeleteElements); err != nil {
				return err
			}
			if err := applyDiff(s.kernelSet(), keys[s.name], g.was[s.name], c.SetAddElements); err != nil {
				return err
			}
		}
	}
	if err := c.Flush(); err != nil {
		return tableError(err)
	}
	return nil
}

// setSendBuffer sets a send buffer for a transaction with all ports of a host, which the kernel takes in
// one message.
func setSendBuffer(c *netlink.Conn) error { return c.SetWriteBuffer(16 << 20) }

// create makes the table with empty sets.
func create(c *nftables.Conn) error {
	c.AddTable(table)
	for _, s := range append(sets[:len(sets):len(sets)], holding) {
		if err := c.AddSet(s.kernelSet(), nil); err != nil {
			return err
		}
	}
	for _, ch := range chains {
		c.AddChain(ch.kernelChain())
	}
	for _, ch := range chains {
		for _, r := range ch.rules {
			c.AddRule(&nftables.Rule{
				Table: table, Chain: ch.kernelChain(), Exprs: r.exprs(),
				UserData: userdata.AppendString(nil, userdata.TypeComment, r.comment()),
			})
		}
	}
	return nil
}

// applyDiff calls what with the elements of `in` that notIn lacks or has with another comment, as many
// at a time as fit into one message.
func applyDiff(s *nftables.Set, in, notIn elements, what func(*nftables.Set, []nftables.SetElement) error) error {
	var some []nftables.SetElement
	for key, comment := range in {
		if other, ok := notIn[key]; !ok || other != comment {
			some = append(some, nftables.SetElement{Key: []byte(key), Comment: comment})
		}
	}
	for chunk := range slices.Chunk(some, 256) {
		if err := what(s, chunk); err != nil {
			return err
		}
	}
	return nil
}

// portKey returns the key of an element: the name of a port and the joined values, each padded to
// words of four bytes.
func portKey(port string, with ...string) string {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, port)
	for _, w := range with {
		key = append(append(key, w...), make([]byte, -len(w)&3)...)
	}
	return string(key)
}

func tableError(err error) error {
	if errors.Is(err, unix.ENFILE) {
		return problem.New(problem.Unable,
			"the ports of bridges cannot be guarded: this host has too many (at most %d, and %d IPv6 addresses)", maxElements,
			maxElements).
			Try("move nodes to other hosts")
	}
	return problem.New(problem.Unable, "the ports of bridges cannot be guarded").Because(err).
		Try("if this kernel's nf_tables does not support bridges: modprobe nf_tables_bridge; or turn the guard off with spoof = true for the network")
}
