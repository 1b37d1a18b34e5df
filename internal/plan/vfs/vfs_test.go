package vfs

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe/sriov"
)

var cardNames = []string{"p0", "p1", "p2"}

// drawCards returns random cards, on which other sites and users have some functions.
func drawCards(t *rapid.T) []sriov.Card {
	var all []sriov.Card
	for i, name := range cardNames[:rapid.IntRange(1, 3).Draw(t, "cards")] {
		c := sriov.Card{Address: fmt.Sprintf("0000:04:00.%d", i), Interfaces: []string{name},
			Total: rapid.IntRange(0, 6).Draw(t, "total")}
		c.Current = rapid.IntRange(0, c.Total).Draw(t, "current")
		for j := range c.Current {
			switch rapid.IntRange(0, 5).Draw(t, "use") {
			case 0:
				c.Used = append(c.Used, sriov.Use{Index: j, Other: "bound to vfio-pci"})
			case 1:
				c.Used = append(c.Used, sriov.Use{Index: j, Holder: "toy/1"})
			}
		}
		all = append(all, c)
	}
	return all
}

// drawWants returns random nodes of a site, none of which has a function yet.
func drawWants(t *rapid.T) []Want {
	var all []Want
	for id := range rapid.IntRange(0, 8).Draw(t, "nodes") {
		first := rapid.IntRange(0, 2).Draw(t, "first")
		all = append(all, Want{Node: fmt.Sprint("n", id), Network: "fast", ID: id + 1,
			Interfaces: cardNames[first : first+rapid.IntRange(1, 3-first).Draw(t, "pool")],
			Holders:    []string{fmt.Sprintf("karoo/%d", id+1)}})
	}
	return all
}

// wantValid checks that functions exist, belong to the network's cards, and have one holder each.
func wantValid(t *rapid.T, cards []sriov.Card, wants []Want, got []string) {
	seen := map[string]bool{}
	for i, name := range got {
		if name == "" {
			continue
		}
		address, index, ok := sriov.ParseName(name)
		at := slices.IndexFunc(cards, func(c sriov.Card) bool { return c.Address == address })
		if !ok || at < 0 || seen[name] {
			t.Fatalf("%s is assigned in %v", name, got)
		}
		seen[name] = true
		c := &cards[at]
		if use := c.Use(index); index >= c.Usable() || !slices.Contains(wants[i].Interfaces, c.Interfaces[0]) ||
			use.Other != "" || use.Holder != "" && !slices.Contains(wants[i].Holders, use.Holder) {
			t.Fatalf("%+v gets %s, which is %+v of %+v", wants[i], name, use, c)
		}
	}
}

// keep records what the nodes got, as their records do.
func keep(wants []Want, got []string) []Want {
	wants = slices.Clone(wants)
	for i := range wants {
		wants[i].Had = got[i]
	}
	return wants
}

// start returns the cards as they are when the nodes run: the functions exist, and Orrery has lent
// them.
func start(cards []sriov.Card, wants []Want, got []string) []sriov.Card {
	cards = slices.Clone(cards)
	for i := range cards {
		c := &cards[i]
		c.Used = slices.Clone(c.Used)
		for j, name := range got {
			address, index, ok := sriov.ParseName(name)
			if ok && address == c.Address && c.Use(index) == (sriov.Use{Index: index}) {
				if index >= c.Current {
					c.Current = c.Total
				}
				c.Used = append(c.Used, sriov.Use{Index: index, Holder: wants[j].Holders[0]})
			}
		}
	}
	return cards
}

// TestAssign: functions of others are never assigned, none twice, and a function stays with its node
// while the node runs, when the host boots, and when other nodes come and go.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards, wants := drawCards(t), drawWants(t)
		got := Assign(cards, wants, nil)
		wantValid(t, cards, wants, got)
		running := start(cards, wants, got)
		wants = keep(wants, got)
		again := Assign(running, wants, nil)
		wantValid(t, running, wants, again)
		if !slices.Equal(got, again) {
			t.Fatalf("a second plan assigns %v after %v", again, got)
		}
		booted := slices.Clone(cards)
		for i := range booted {
			booted[i].Current, booted[i].Used = 0, nil
		}
		after := Assign(booted, wants, nil)
		for i := range got {
			if got[i] != "" && after[i] != got[i] {
				t.Fatalf("after a boot %v, before %v", after, got)
			}
		}
		edited, former := wants, got
		if len(edited) > 0 {
			gone := rapid.IntRange(0, len(edited)-1).Draw(t, "gone")
			edited, former = slices.Delete(slices.Clone(edited), gone, gone+1), slices.Delete(slices.Clone(former), gone, gone+1)
		}
		edited = append(edited, Want{Node: "new", Network: "fast", ID: rapid.IntRange(0, 20).Draw(t, "id"),
			Interfaces: cardNames, Holders: []string{"karoo/99"}})
		changed := Assign(running, edited, nil)
		wantValid(t, running, edited, changed)
		for i := range former {
			if former[i] != "" && changed[i] != former[i] {
				t.Fatalf("after an edit %v, before %v", changed, former)
			}
		}
	})
}

// TestAssignAll: on one pool, nodes go without a function only if no function is left.
func TestAssignAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cards, wants := drawCards(t), drawWants(t)
		free := 0
		for _, c := range cards {
			for i := range c.Usable() {
				if c.Use(i) == (sriov.Use{Index: i}) {
					free++
				}
			}
		}
		for i := range wants {
			wants[i].Interfaces = cardNames
		}
		got, assigned := Assign(cards, wants, nil), 0
		for _, name := range got {
			if name != "" {
				assigned++
			}
		}
		if assigned != min(free, len(wants)) {
			t.Fatalf("%d of %d nodes got one of %d free functions: %v of %+v", assigned, len(wants), free, got, cards)
		}
	})
}

// TestAssignSpreads: cards of a pool get the same number of nodes. Functions of undeclared nodes come
// last, and one that is taken by another program is replaced.
func TestAssignSpreads(t *testing.T) {
	cards := []sriov.Card{{Address: "a", Interfaces: []string{"p0"}, Total: 2},
		{Address: "b", Interfaces: []string{"p1"}, Total: 2}}
	wants := make([]Want, 4)
	for i := range wants {
		wants[i] = Want{Node: fmt.Sprint("n", i), ID: i, Interfaces: cardNames}
	}
	if got := Assign(cards, wants[:3], nil); !slices.Equal(got, []string{"av0", "bv0", "av1"}) {
		t.Error(got)
	}
	if got := Assign(cards, wants[:2], []string{"av0", "bv0", "bv1"}); !slices.Equal(got, []string{"av1", "bv0"}) {
		t.Error(got)
	}
	wants[0].Had = "bv1"
	cards[1].Current = 2
	cards[1].Used = []sriov.Use{{Index: 1, Other: "up"}}
	if got := Assign(cards, wants, nil); !slices.Equal(got, []string{"av0", "av1", "bv0", ""}) {
		t.Error(got)
	}
}
