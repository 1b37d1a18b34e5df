package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/cli/labverb"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/site"
)

// TestRunning: while site.toml has a mistake, verbs for nodes that exist go on with the recorded
// site, in this case as far as its host, which does not answer. The others report the mistake.
func TestRunning(t *testing.T) {
	t.Setenv("ORRERY_STATE", t.TempDir())
	t.Setenv("ORRERY_RUN", t.TempDir())
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		mustDo(t, os.WriteFile(filepath.Join(dir, "site.toml"), []byte(text), 0o600))
	}
	write("[site]\nname = \"away\"\n[host.sv1]\naddress = \"root@127.0.0.1:1\"\n[network.lan]\nsubnet = \"10.99.1.0/24\"\n" +
		"[image.debian]\nsuite = \"bookworm\"\n[node.one]\nid = 11\nhost = \"sv1\"\n")
	up := (&control.Session{Dirs: host.DefaultDirs()}).Register()
	mustDo(t, up.StoreDeclaration("away", dir))
	mustDo(t, up.MarkUp(&site.Site{Name: "away"}, dir))
	write("[site]\nname = \"away\"\n[nodes.one]\n")
	const warning = "orrery: site.toml:3: "
	for _, line := range []string{
		"status", "logs one", "exec one -- true", "shell one", "stop one", "start", "restart", "cp one:/x .",
		"forward one:80", "journal", "graph", "-C away status",
	} {
		said, status := callIn(dir, line)
		if status != 1 || strings.Count(said, "; using what this host has recorded.\n") != 1 ||
			!strings.HasPrefix(said, warning) || !strings.Contains(said, "host sv1") {
			t.Errorf("orrery %s: status %d:\n%s", line, status, said)
		}
	}
	for _, line := range []string{"up", "plan", "check", "stage --release 700", "switch --release 700", "rollback",
		"confirm", "down", "query", "inventory", "ssh-config", "snapshot", "move one --to sv1", "volume ls", "release ls",
		"-C away up"} {
		if said, status := callIn(dir, line); status != 3 || strings.Contains(said, "recorded") {
			t.Errorf("orrery %s: status %d:\n%s", line, status, said)
		}
	}
}

// callIn runs a command line for the site in a directory, unless the line names a site, and returns
// what it printed to standard error.
func callIn(dir, line string) (errs string, status int) {
	var out, said bytes.Buffer
	args := strings.Fields(line)
	if args[0] != "-C" {
		args = append([]string{"-C", dir}, args...)
	}
	status = Run(args, labverb.Lab{}, strings.NewReader(""), &out, &said)
	return said.String(), status
}
