package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMerge checks that entries of several hosts are in the order of time, and those of one host in
// their own order. An entry that a run wrote to all of them appears once.
func TestMerge(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	entry := func(second int, run, kind string) Entry { return Entry{Time: at(second), Run: run, Kind: kind} }
	one := []Entry{entry(1, "a", "begin"), entry(2, "a", "step"), entry(5, "a", "end"), entry(9, "b", "begin"),
		entry(8, "b", "end")}
	two := []Entry{entry(1, "a", "begin"), entry(3, "a", "step"), entry(5, "a", "end"), entry(7, "c", "begin"),
		entry(10, "c", "end")}
	all := Merge([]string{"sv1", "sv2"}, [][]Entry{one, two})
	text := func(all []Entry) string {
		var words []string
		for _, e := range all {
			words = append(words, fmt.Sprint(e.Run, " ", e.Kind, " ", strings.Join(e.Hosts, "+")))
		}
		return strings.Join(words, ", ")
	}
	want := "a begin sv1+sv2, a step sv1, a step sv2, a end sv1+sv2, c begin sv2, b begin sv1, b end sv1, c end sv2"
	if got := text(all); got != want {
		t.Errorf("merged are %s\nnot %s", got, want)
	}
	for runs, from := range map[int]int{0: 0, 1: 5, 2: 4, 3: 0, 9: 0} {
		if got, want := text(LastRuns(all, runs)), text(all[from:]); got != want {
			t.Errorf("of the last %d runs, there are %s\nnot %s", runs, got, want)
		}
	}
	if all := Merge(nil, nil); len(all) != 0 {
		t.Errorf("of no host, there is %v", all)
	}
}

// TestScanFlood checks that the number of entries is limited, and that a journal cannot claim the
// hosts of its entries.
func TestScanFlood(t *testing.T) {
	defer func(old int) { maxEntries = old }(maxEntries)
	maxEntries = 1000
	all, _, _, err := Decode(strings.NewReader(strings.Repeat("{\"kind\":\"x\",\"hosts\":[\"sv1\"]}\n", maxEntries+1)))
	if err == nil || len(all) != maxEntries || all[0].Hosts != nil {
		t.Errorf("%d entries, the first of %v: %v", len(all), all[0].Hosts, err)
	}
	if _, damaged, _, err := Decode(strings.NewReader(strings.Repeat("x\n", maxEntries+1))); err == nil ||
		len(damaged) != maxEntries {
		t.Errorf("%d damaged lines: %v", len(damaged), err)
	}
}
