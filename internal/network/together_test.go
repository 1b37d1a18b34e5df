package network

import (
	"context"
	"fmt"
	"testing"
	"time"

	"orrery/internal/network/ports"
)

// awaitChanges waits until so many changes of ports wait.
func awaitChanges(t *testing.T, want int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		portChanges.mutex.Lock()
		have := len(portChanges.waiting)
		portChanges.mutex.Unlock()
		if have == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d changes wait, want %d", have, want)
		}
	}
}

// TestPortsTogether has nodes start while the lock of the networks is held: they are guarded in one transaction. One
// whose address is none fails alone, and one that gives up is not guarded.
func TestPortsTogether(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, closed)
	unlock, err := lock(t.Context())
	must(t, err)
	const count = 8
	ended := make(chan error)
	for i := range count {
		go func() {
			mac, address := fmt.Sprintf("02:00:00:00:00:%02x", i), fmt.Sprintf("10.8.69.%d/24", i+1)
			ended <- Guard(t.Context(), []Port{{fmt.Sprint("orv", i), closed.Bridge, mac, address, ""}})
		}()
	}
	bad, hasty := make(chan error), make(chan error)
	go func() {
		bad <- Guard(t.Context(), []Port{{"orvbad", closed.Bridge, "02:00:00:00:01:00", "nowhere", ""}})
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		hasty <- Guard(ctx, []Port{{"orvhasty", closed.Bridge, "02:00:00:00:01:01", "10.8.69.99/24", ""}})
	}()
	awaitChanges(t, count+2)
	cancel()
	if err := <-hasty; err == nil {
		t.Error("one that gave up was told that its port is guarded")
	}
	awaitChanges(t, count+1)
	unlock()
	must(t, <-ended)
	g, err := ports.Open()
	must(t, err)
	if len(g.Held) != count || !g.Whole {
		t.Errorf("when the first was done, these were held: %v", g.Held)
	}
	for range count - 1 {
		must(t, <-ended)
	}
	if err := <-bad; err == nil {
		t.Error("a port with no address was guarded")
	}
	var links []string
	for link := range g.Held {
		links = append(links, link)
	}
	must(t, Unguard(t.Context(), links))
	if g, err = ports.Open(); err != nil || g.Existing {
		t.Errorf("a table stays: %v", err)
	}
}
