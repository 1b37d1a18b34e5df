package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/need"
)

// onHost are the pages that are also tried on this host, and the sites that they make. What nodes really do is not
// seen in memory.
var onHost = map[string]string{
	"docs/tutorials/first-site.md":    "first",
	"docs/tutorials/change-safely.md": "notes",
	"docs/tutorials/twin.md":          "shop",
	"docs/howto/rename.md":            "shop",
	"docs/howto/service.md":           "front",
}

// TestOnHost does what pages do, in order, at other addresses.
func TestOnHost(t *testing.T) {
	need.Integration(t)
	bin := t.TempDir()
	run(t, ".", nil, "go", "build", "-o", filepath.Join(bin, "orrery"), "../cmd/orrery")
	env := grounds(t, bin)
	for path, site := range onHost {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			end := func() {
				dir := t.TempDir()
				put(t, dir, "site.toml", "site.name = \""+site+"\"\n")
				takeDown(t, dir, env, site)
			}
			end() // what a run that was killed has left
			t.Cleanup(end)
			s := &session{T: t, dir: t.TempDir()}
			s.orrery = func(step step, _ []string) {
				status, printed := runStatus(t, s.dir, env, "sh", "-c", step.command)
				s.compare(step, status, printed)
			}
			s.follow(blocks(strings.ReplaceAll(one(t, path).text, "10.8.", "10.213.")))
		})
	}
}
