package test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machines is a container and a virtual machine of one role, which has two editions. The role
// reports its edition to clients.
const machines = `
image.debian.suite = "bookworm"
[network.lan]
subnet = "10.99.78.0/24"
gateway = "10.99.78.1"
[defaults]
memory = "256MiB"
[node.container]
id = 11
roles = ["greeter"]
[node.machine]
id = 12
roles = ["greeter"]
engine = "kvm"
[release.701.roles]
greeter = "greeter2"
`

// both are the addresses of the nodes of machines.
var both = map[string]string{"container": "10.99.78.11:7000", "machine": "10.99.78.12:7000"}

// wantEdition wants that what answers at the addresses of the nodes is of an edition.
func (s *site) wantEdition(edition string) {
	s.Helper()
	for node, address := range both {
		if text, err := greeted(address); text != edition {
			s.Errorf("%s says %q, not %q: %v", node, text, edition, err)
		}
	}
}

// TestMachines: a virtual machine supports the same as a container beside it: commands, files,
// logs, a warm switch and its rollback, snapshots, backups, twins, and removal without a trace.
func TestMachines(t *testing.T) {
	t.Parallel()
	// emulation is slow
	patient := strings.Replace(greeterRole, `"20s"`, `"5m"`, 1) +
		"timeout = \"30s\"\n[[volume]]\nname = \"data\"\npath = \"/srv/data\"\n"
	s := newSite(t, "it-machines", machines, files{
		"roles/greeter/role.toml": patient, "roles/greeter/greeter.py": greeterSays("one"),
		"roles/greeter2/role.toml": patient, "roles/greeter2/greeter.py": greeterSays("two"),
	})
	s.do("up")
	s.wantEdition("one")
	s.Run("Commands", func(t *testing.T) { machinesCommands(s.of(t)) })
	s.Run("Switch", func(t *testing.T) { machinesSwitch(s.of(t)) })
	s.Run("Snapshot", func(t *testing.T) { machinesSnapshot(s.of(t)) })
	s.Run("Backup", func(t *testing.T) { machinesBackup(s.of(t)) })
	s.do("down")
	s.wantNoTrace()
}

// machinesCommands: commands on both at once, files into and out of them, their logs.
func machinesCommands(s *site) {
	s.run("exec", "all", "--", "hostname").want(0, "(?m)^container \\| container$", "(?m)^machine +\\| machine$")
	s.run("exec", "all", "--", "sh", "-c", "[ $(hostname) = container ]").want(101)
	s.write("payload", strings.Repeat("some\n", 100_000))
	s.do("cp", filepath.Join(s.dir, "payload"), "all:/root/")
	s.do("cp", "all:/root/payload", filepath.Join(s.dir, "back")+"/")
	for node := range both {
		text, err := os.ReadFile(filepath.Join(s.dir, "back", node, "payload"))
		if err != nil || string(text) != strings.Repeat("some\n", 100_000) {
			s.Errorf("from %s come %d bytes: %v", node, len(text), err)
		}
	}
	s.run("logs", "all", "greeter.service").want(0, "container \\| .*greeter.service", "machine +\\| .*greeter.service")
	s.run("plan").want(0, "nothing to do")
}

// machinesSwitch: the set goes live and back as one, by moving its links, and takes its volumes
// along. Programs in the machine keep running all the time.
func machinesSwitch(s *site) {
	s.do("exec", "all", "--", "sh", "-c", "hostname > /srv/data/rows")
	s.do("stage", "--release", "701")
	s.wantEdition("one")
	cmd, _, errs := s.command("shell", "machine", "--", "sh", "-c", "echo begun; read word; echo $word")
	in, write := io.Pipe()
	read, out := io.Pipe()
	cmd.Stdin, cmd.Stdout = in, out
	wait, err := begin(cmd)
	must(s.T, err)
	said := bufio.NewReader(read)
	if line, err := said.ReadString('\n'); line != "begun\n" {
		s.Fatalf("the command says %q: %v %s", line, err, errs)
	}

	for _, turn := range []struct {
		edition string
		by      []string
		rows    func(node string) string
	}{
		{"two", []string{"switch", "--release", "701"}, func(node string) string { return node + " two" }},
		{"one", []string{"rollback"}, func(node string) string { return node + " two one" }},
	} {
		ends := map[string]func() caller{}
		for node, address := range both {
			ends[node] = call(address)
		}
		r := s.run(turn.by...).want(0)
		s.wantEdition(turn.edition)
		for node, end := range ends {
			c := end()
			s.Logf("%s: %s took %s, without an answer for %s at most, who said %q", node, turn.by[0],
				r.took.Round(time.Millisecond), c.longest.Round(time.Millisecond), c.said)
		}
		s.run("exec", "all", "--", "grep", "sendall", "/usr/local/bin/greeter.py").
			want(0, "(?m)^container \\| .*"+turn.edition, "(?m)^machine +\\| .*"+turn.edition)
		for node := range both {
			if got := s.sh(node, "echo "+turn.edition+
				" >> /srv/data/rows; cat /srv/data/rows | tr '\\n' ' '"); got != turn.rows(node) {
				s.Errorf("%s: the volume of %s has %q", turn.by[0], node, got)
			}
		}
	}

	if _, err := io.WriteString(write, "and goes on\n"); err != nil {
		s.Error(err)
	}
	write.Close()
	if line, err := said.ReadString('\n'); line != "and goes on\n" {
		s.Errorf("the command in the machine says %q after all: %v %s", line, err, errs)
	}
	if err := wait(); err != nil {
		s.Errorf("the command in the machine: %v %s", err, errs)
	}
}

// machinesSnapshot: what both have written is restored.
func machinesSnapshot(s *site) {
	s.do("exec", "all", "--", "sh", "-c", "hostname > /root/kept; chown nobody /root/kept")
	taken := s.snapshot()
	s.Logf("pause %.1f ms, skew %.1f ms", taken.Pause*1000, taken.Skew*1000)
	s.do("exec", "all", "--", "sh", "-c", "rm /root/kept; touch /root/since")
	s.do("snapshot", "restore", taken.ID, "--yes-restore", s.name)
	for node := range both {
		if got := s.sh(node, "cat /root/kept; stat -c %U /root/kept; ls /root/since 2>&1 | tail -c 27"); !strings.HasPrefix(
			got, node+"\nnobody\n") || !strings.Contains(got, "No such file") {
			s.Errorf("after the snapshot has been restored, %s has %q", node, got)
		}
	}
	s.wantEdition("one")
	s.settled()
}

// machinesBackup: single files are restored from a backup, and a twin beside the site has all of
// its data.
func machinesBackup(s *site) {
	backup := filepath.Join(s.dir, "..", filepath.Base(s.dir)+".orrery")
	s.Cleanup(func() { os.Remove(backup) })
	s.do("backup", backup)
	found := s.TempDir()
	s.do("restore", backup, "--file", "machine:/root/kept", "--dir", found)
	s.do("restore", backup, "--to", "again")
	for node := range both {
		if got := strings.TrimSpace(s.do("shell", "--twin", "again", node, "--", "cat", "/root/kept")); got != node {
			s.Errorf("in the twin, %s has %q", node, got)
		}
	}
	s.do("exec", "--twin", "again", "all", "--", "touch", "/root/of-twin")
	s.do("exec", "all", "--", "test", "!", "-e", "/root/of-twin")
	s.wantEdition("one")
	s.do("twin", "destroy", "again")
	s.settled()
}
