package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/engine/enginetest"
)

// ledger is a role whose data two nodes must never write at once. A service numbers the lines that
// it appends, and waits for the disk after each. A writer that does not see all earlier lines, or
// writes in parallel, causes a gap or a duplicate number.
var ledger = files{
	"roles/ledger/role.toml": `
services = ["ledger.service"]
[[service]]
name = "only.service"
when = "active"
[[file]]
path = "/usr/local/bin/ledger.py"
source = "ledger.py"
[[file]]
path = "/etc/systemd/system/ledger.service"
content = """
[Service]
ExecStart=/usr/bin/python3 /usr/local/bin/ledger.py
[Install]
WantedBy=multi-user.target
"""
[[file]]
path = "/etc/systemd/system/only.service"
content = """
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
[[volume]]
name = "data"
path = "/srv/data"
[[step]]
name = "once"
when = "active"
script = "echo ${ORRERY_RELEASE:-none} >> /srv/data/active"
[[health]]
command = ["test", "-s", "/srv/data/ledger"]
within = "20s"
`,
	"roles/ledger/ledger.py": `
import os, time
me = os.urandom(8).hex()
with open("/srv/data/ledger", "a+b", buffering=0) as f:
    f.seek(0)
    n = f.read().count(b"\n")
    while True:
        n += 1
        f.write(b"%d %s\n" % (n, me.encode()))
        os.fsync(f.fileno())
        time.sleep(0.02)
`,
}

// lines returns the lines of the ledger of a node, as they are on the host's disk. They must have
// no gap.
func (s *site) lines(node string) []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dirs.Volumes(s.name), "data", node, "ledger"))
	if err != nil {
		s.Fatal(err)
	}
	if whole := strings.LastIndexByte(string(text), '\n'); whole >= 0 {
		text = text[:whole] // the last line may be incomplete
	}
	all := strings.Split(string(text), "\n")
	for i, line := range all {
		if !strings.HasPrefix(line, fmt.Sprintf("%d ", i+1)) {
			s.Fatalf("line %d of the ledger is %q, after %q", i+1, line, all[max(0, i-3):i])
		}
	}
	return all
}

// wantKept wants that no line of the ledger was lost that was there, and that more are coming.
func (s *site) wantKept(node string, before []string) {
	s.Helper()
	s.eventually(func() error {
		now := s.lines(node)
		if len(now) <= len(before) {
			return fmt.Errorf("the ledger has %d lines, and had %d", len(now), len(before))
		}
		for i, line := range before {
			if now[i] != line {
				s.Fatalf("line %d of the ledger was %q and is %q", i+1, line, now[i])
			}
		}
		return nil
	})
}

// writers returns the ids of the nodes that can write to the ledger's volume, from the mount tables
// of all processes.
func (s *site) writers(node string) []string {
	s.Helper()
	all, err := enginetest.Writers(filepath.Join(s.dirs.Volumes(s.name), "data", node))
	if err != nil {
		s.Fatal(err)
	}
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], s.name+"/")
	}
	return all
}

// wantWriter wants that exactly one node can write to the ledger's volume.
func (s *site) wantWriter(node, id string) {
	s.Helper()
	if all := s.writers(node); len(all) != 1 || all[0] != id {
		s.Errorf("the volume of %s can be written by %v, and should be by %s alone", node, all, id)
	}
}
