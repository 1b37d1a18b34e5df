// Package hook reports events of a site to the programs and servers in its site file.
//
// Enqueue stores an event beside the site's state, and another process sends it (Deliver). So no
// command waits for a hook.
package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// An Event is an event of a site, as sent to hooks.
type Event struct {
	Event   string    `json:"event"` // one of event.All
	Site    string    `json:"site"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
	Who     string    `json:"who"`
	Result  string    `json:"result"`            // one word
	Why     string    `json:"why,omitempty"`     // the error message, which may contain output of nodes
	Release *int      `json:"release,omitempty"` // release number, or 0 for none
	Volume  string    `json:"volume,omitempty"`
	Node    string    `json:"node,omitempty"`
	Subject string    `json:"subject,omitempty"` // what is wrong, such as "node web1" or "disk of host sv1"
	Backup  string    `json:"backup,omitempty"`  // location of the backup
	Bytes   int64     `json:"bytes,omitempty"`
}

// A queuedEvent is an event for one hook, with the hook's declaration at the time of the event.
type queuedEvent struct {
	To   site.Hook `json:"to"`
	What Event     `json:"what"`
}

// maxQueued limits the waiting events of a site. If none can be sent, storing more of them does
// not help.
const maxQueued = 100

// maxReasonBytes limits the length of a reason.
const maxReasonBytes = 4 << 10

func queueDir(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "hooks") }

// Enqueue stores an event for each hook of a site that subscribes to it, and reports whether there is
// any. Twins have no hooks.
func Enqueue(dirs host.Dirs, s *site.Site, e Event) (some bool, err error) {
	if s.Twin != "" {
		return false, nil
	}
	e.Site = s.Name
	e.Host, _ = os.Hostname()
	e.Time = e.Time.UTC().Truncate(time.Second)
	e.Why = problem.Truncate(e.Why, maxReasonBytes)
	for _, h := range s.Hooks {
		if !slices.Contains(h.On, e.Event) {
			continue
		}
		if err := enqueue(queueDir(dirs, s.Key()), queuedEvent{h, e}); err != nil {
			return some, err
		}
		some = true
	}
	return some, nil
}

func enqueue(dir string, l queuedEvent) error {
	waiting, err := queuedFiles(dir)
	if err != nil {
		return err
	}
	if len(waiting) >= maxQueued {
		return fmt.Errorf("hook %s: the event is dropped because %d others are waiting", l.To.Name, len(waiting))
	}
	return host.WriteJSON(filepath.Join(dir, fmt.Sprintf("%020d-%s.json", time.Now().UnixNano(), l.To.Name)), 0o600, l)
}

// queuedFiles returns the files of the waiting events, the oldest first.
func queuedFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// dequeue reads an event and removes it, so that it is sent at most once.
func dequeue(path string) (l queuedEvent, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if err := os.Remove(path); err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}
