// Package vfs assigns virtual functions of network cards to nodes. It is pure.
//
// A node keeps the function that its record names, as long as the function exists and nobody else
// uses it. So an assignment survives reboots of the host and changes of the site.
package vfs

import (
	"cmp"
	"slices"

	"orrery/internal/observe/sriov"
)

// A Want is an interface of a node that needs a virtual function of a host.
type Want struct {
	Node, Network string
	ID            int
	Interfaces    []string // whose cards may provide the function
	Had           string   // function in the node's record, or ""
	Holders       []string // SITE/ID of the node and of its other instances
}

// Assign returns the name of the function for each want, or "" where none is left. No function is
// assigned twice, or assigned while another program uses it. Functions in reserved belong to nodes
// that the site no longer declares, and are assigned only if no others are left.
func Assign(cards []sriov.Card, wants []Want, reserved []string) []string {
	a := assignment{cards: cards, got: make([]string, len(wants)), taken: map[string]bool{}}
	order := make([]int, len(wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { // those with the smallest choice are first
		x, y := &wants[i], &wants[j]
		return cmp.Or(cmp.Compare(len(sriov.Of(cards, x.Interfaces)), len(sriov.Of(cards, y.Interfaces))),
			cmp.Compare(x.ID, y.ID), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Network, y.Network))
	})
	for _, i := range order {
		if a.canKeep(&wants[i]) {
			a.give(i, wants[i].Had)
		}
	}
	for _, avoid := range [][]string{reserved, nil} {
		for _, i := range order {
			if a.got[i] == "" {
				a.give(i, a.free(&wants[i], avoid))
			}
		}
	}
	return a.got
}

// An assignment is an unfinished result of Assign.
type assignment struct {
	cards []sriov.Card
	got   []string
	taken map[string]bool
}

func (a *assignment) give(want int, name string) {
	a.got[want] = name
	a.taken[name] = name != ""
}

// canKeep reports whether a node can keep the function that it had.
func (a *assignment) canKeep(w *Want) bool {
	address, index, ok := sriov.ParseName(w.Had)
	return ok && slices.ContainsFunc(sriov.Of(a.cards, w.Interfaces), func(c *sriov.Card) bool {
		return c.Address == address && index < c.Usable() && a.isFree(c, index, w)
	})
}

// isFree reports whether a node can have a function.
func (a *assignment) isFree(c *sriov.Card, index int, w *Want) bool {
	use := c.Use(index)
	return !a.taken[sriov.Name(c.Address, index)] && use.Other == "" &&
		(use.Holder == "" || slices.Contains(w.Holders, use.Holder))
}

// free returns a free function of the card that has the fewest in use, or "" if there is none.
func (a *assignment) free(w *Want, avoid []string) (name string) {
	least := 0
	for _, c := range sriov.Of(a.cards, w.Interfaces) {
		first, used := "", 0
		for i := range c.Usable() {
			switch one := sriov.Name(c.Address, i); {
			case !a.isFree(c, i, w) || slices.Contains(avoid, one):
				used++
			case first == "":
				first = one
			}
		}
		if first != "" && (name == "" || used < least) {
			name, least = first, used
		}
	}
	return name
}
