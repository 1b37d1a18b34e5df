package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// add appends to the site file.
func (s *site) add(text string) {
	s.Helper()
	old, err := os.ReadFile(filepath.Join(s.dir, "site.toml"))
	must(s.T, err)
	s.write("site.toml", string(old)+text)
}

// hears installs a hook of the site that records some events. The returned function checks the
// event, result and subject of each record.
func (s *site) hears(events ...string) (heard func(want ...string)) {
	s.Helper()
	file := filepath.Join(s.TempDir(), "events")
	on, _ := json.Marshal(events)
	s.add(fmt.Sprintf(`
[hook.told]
on = %s
command = ["/bin/sh", "-c", "cat >> %s"]
user = "root"
`, on, file))
	return func(want ...string) {
		s.Helper()
		s.eventually(func() error {
			text, _ := os.ReadFile(file)
			var got []string
			for line := range strings.Lines(string(text)) {
				var e struct{ Event, Result, Volume, Node, Backup string }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					return err
				}
				got = append(got, strings.Join(strings.Fields(e.Event+" "+e.Result+" "+e.Volume+" "+e.Node+" "+e.Backup), " "))
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("hooks were told %q, want %q", got, want)
			}
			return nil
		})
	}
}
