// Package sriov describes the network cards of a host that have virtual functions (SR-IOV), and who
// uses these.
package sriov

import (
	"slices"
	"strconv"
	"strings"
)

// A Card is a physical function: a network card, or one port of it, that can have virtual functions.
type Card struct {
	Address string `json:"address"` // on its bus: "0000:04:00.0"
	// Interfaces are the names of its network interfaces on the host.
	Interfaces []string `json:"interfaces,omitempty"`
	Driver     string   `json:"driver,omitempty"`
	Up         bool     `json:"up,omitempty"`
	Total      int      `json:"total"`   // how many virtual functions it can have
	Current    int      `json:"current"` // how many it has now
	// Used has the functions that are in use, by index.
	Used []Use `json:"used,omitempty"`
}

// A Use is a virtual function in use.
type Use struct {
	Index int `json:"index"`
	// Holder is the node to which Orrery has lent the function, as SITE/ID, or "".
	Holder string `json:"holder,omitempty"`
	// Other says how a program other than Orrery uses the function, or is "".
	Other string `json:"other,omitempty"`
}

// Usable returns how many functions nodes can have in all, including those that they have. The
// kernel changes the number of functions only by removing all of them. So a card with a function in
// use has no others than those that exist.
func (c *Card) Usable() int {
	if len(c.Used) > 0 {
		return c.Current
	}
	return max(c.Total, c.Current)
}

// Use returns how a function is used. The zero Use means that it is free.
func (c *Card) Use(index int) Use {
	i := slices.IndexFunc(c.Used, func(u Use) bool { return u.Index == index })
	if i < 0 {
		return Use{Index: index}
	}
	return c.Used[i]
}

// maxIndex limits the index of a function: a card has at most 65,535 (PCI Express, SR-IOV).
const maxIndex = 1 << 16

// Name returns the name of a virtual function: "0000:04:00.0v3". It stays the same when the host
// boots, because it depends only on the card's place and the index. The name of its interface
// depends on its driver, and its own address on how many functions the card has.
func Name(card string, index int) string { return card + "v" + strconv.Itoa(index) }

// ParseName returns the card and the index of the virtual function with a name. It returns false if
// the name is not one that Name returns, or could be the path of another file.
func ParseName(name string) (card string, index int, ok bool) {
	at := strings.LastIndex(name, "v")
	if at < 1 || at > 32 || strings.ContainsFunc(name[:at], isForeign) || name[0] == '.' {
		return "", 0, false
	}
	index, err := strconv.Atoi(name[at+1:])
	if err != nil || index < 0 || index >= maxIndex || name[at+1:] != strconv.Itoa(index) {
		return "", 0, false
	}
	return name[:at], index, true
}

// isForeign reports whether a character cannot be part of an address on a bus.
func isForeign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != ':' && r != '.'
}

// Interfaces returns the interfaces that a network of virtual functions names, from the form in
// which the site's model and marks contain them.
func Interfaces(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Of returns those cards that have one of the interfaces, in the order of the interfaces.
func Of(cards []Card, interfaces []string) (all []*Card) {
	for _, name := range interfaces {
		i := slices.IndexFunc(cards, func(c Card) bool { return slices.Contains(c.Interfaces, name) })
		if i >= 0 && !slices.Contains(all, &cards[i]) {
			all = append(all, &cards[i])
		}
	}
	return all
}
