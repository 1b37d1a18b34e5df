package sriov

import (
	"strings"
	"testing"
)

// TestName: a name and its parts follow from one another, and no name is a path.
func TestName(t *testing.T) {
	for _, card := range []string{"0000:04:00.0", "10000:e1:00.1", "netdevsim1"} {
		for _, index := range []int{0, 3, 255} {
			if c, i, ok := ParseName(Name(card, index)); c != card || i != index || !ok {
				t.Errorf("%s: %q, %d, %t", Name(card, index), c, i, ok)
			}
		}
	}
	for _, name := range []string{"", "v", "v1", "0000:04:00.0", "0000:04:00.0v", "0000:04:00.0v-1", "0000:04:00.0v01",
		"0000:04:00.0v+1", "../../etc/v1", "..v1", "a/b v1", "A v1", "0000:04:00.0v70000", "0000:04:00.0v99999999999999999999",
		strings.Repeat("0", 40) + "v1", "0000:04:00.0\nv1"} {
		if c, i, ok := ParseName(name); ok {
			t.Errorf("%q is %q, %d", name, c, i)
		}
	}
}

// TestUsable: a card with a function in use cannot get more.
func TestUsable(t *testing.T) {
	for _, c := range []struct {
		card Card
		want int
	}{
		{Card{Total: 7}, 7},
		{Card{Total: 7, Current: 4}, 7},
		{Card{Total: 7, Current: 4, Used: []Use{{Index: 2, Other: "bound to vfio-pci"}}}, 4},
		{Card{Total: 7, Current: 4, Used: []Use{{Index: 0, Holder: "karoo/1"}}}, 4},
		{Card{Current: 4}, 4},
	} {
		if got := c.card.Usable(); got != c.want {
			t.Errorf("%+v: %d", c.card, got)
		}
	}
}

// TestOf: cards are found by any of their interfaces, each once.
func TestOf(t *testing.T) {
	cards := []Card{{Address: "a", Interfaces: []string{"p0", "p1"}}, {Address: "b", Interfaces: []string{"q0"}}}
	var found []string
	for _, c := range Of(cards, Interfaces("q0,p1,p0,gone")) {
		found = append(found, c.Address)
	}
	if got := strings.Join(found, " "); got != "b a" {
		t.Error(got)
	}
	if Of(cards, Interfaces("")) != nil {
		t.Error("no interface has a card")
	}
}
