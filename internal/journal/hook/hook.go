// Package hook tells programs and servers what has happened to a site: those that its site file
// names.
//
// What is to be told is written down beside the site's state, with to whom, and told by another
// process (Deliver): so nobody waits for it.
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

// An Event is what has happened.
type Event struct {
	Event   string    `json:"event"` // one of site.Events
	Site    string    `json:"site"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
	Who     string    `json:"who"`
	Result  string    `json:"result"`            // in a word
	Why     string    `json:"why,omitempty"`     // in the words of the message; what nodes have said may be in it
	Release *int      `json:"release,omitempty"` // 0: none
	Volume  string    `json:"volume,omitempty"`
	Node    string    `json:"node,omitempty"`
	Backup  string    `json:"backup,omitempty"` // where it is
	Bytes   int64     `json:"bytes,omitempty"`
}

// A letter is an event on its way to one hook. The hook is as it was declared when the event happened.
type letter struct {
	To   site.Hook `json:"to"`
	What Event     `json:"what"`
}

// maxLetters bounds what waits for a site: if nothing can be told, there is no use in keeping more.
const maxLetters = 100

// maxWhy is how much is told of a reason.
const maxWhy = 4 << 10

func directory(dirs host.Dirs, key string) string { return filepath.Join(dirs.Site(key), "hooks") }

// Post writes an event down for each hook of a site that wants to hear of it, and reports whether
// there is any. Twins tell nothing: they have no hooks.
func Post(dirs host.Dirs, s *site.Site, e Event) (some bool, err error) {
	if s.Twin != "" {
		return false, nil
	}
	e.Site = s.Name
	e.Host, _ = os.Hostname()
	e.Time = e.Time.UTC().Truncate(time.Second)
	e.Why = problem.Short(e.Why, maxWhy)
	for _, h := range s.Hooks {
		if !slices.Contains(h.On, e.Event) {
			continue
		}
		if err := post(directory(dirs, s.Key()), letter{h, e}); err != nil {
			return some, err
		}
		some = true
	}
	return some, nil
}

func post(dir string, l letter) error {
	waiting, err := letters(dir)
	if err != nil {
		return err
	}
	if len(waiting) >= maxLetters {
		return fmt.Errorf("hook %s: %d events wait to be told already", l.To.Name, len(waiting))
	}
	return host.WriteJSON(filepath.Join(dir, fmt.Sprintf("%020d-%s.json", time.Now().UnixNano(), l.To.Name)), 0o600, l)
}

// letters returns the files of what waits, the oldest first.
func letters(dir string) ([]string, error) {
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

// take reads a letter and removes it: each is delivered once, or not at all.
func take(path string) (l letter, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if err := os.Remove(path); err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}
