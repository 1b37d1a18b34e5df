package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inserter inserts rows, each once, over several connections, and prints the number of each row
// that the database has acknowledged.
const inserter = `
import asyncio, itertools, pathlib, asyncpg

PASSWORD, END = pathlib.Path("/etc/orrery/secrets/db_password"), pathlib.Path("/run/end")
NUMBERS, WRITERS, PAUSE = itertools.count(1), %d, %f

async def write():
    db = None
    while not END.exists():
        number = next(NUMBERS)
        try:
            if db is None:
                db = await asyncpg.connect(host="db", user="portal", database="toykat", password=PASSWORD.read_text().strip(), timeout=1)
                await db.execute("SET synchronous_commit = on")
            await db.execute("INSERT INTO samples (time, receptor, sensor, value, status) VALUES (now(), 'client', 'n', $1, 'nominal')",
                             float(number), timeout=1)
        except Exception:  # whatever it is: the row was not acknowledged
            if db is not None:
                db.terminate()
            db = None
            await asyncio.sleep(0.02)
            continue
        print(number, flush=True)
        await asyncio.sleep(PAUSE)

async def main():
    await asyncio.gather(*(write() for _ in range(WRITERS)))

asyncio.run(main())
`

const ackedSite = `
[network.cam]
subnet = "10.99.115.0/24"
[image.debian]
suite = "bookworm"
[defaults]
requirements = "requirements/toykat.txt"
[node.client]
id = 101
roles = ["client"]
[node.db]
id = 102
roles = ["db"]
[secret.db_password]
generate = 32
[release.701.roles]
db = "db-server"
`

// dbBase is what role db has for its volume, in a role below that of the server.
const dbBase = `
apt = ["postgresql-15"]
[[file]]
path    = "/etc/postgresql-common/createcluster.conf"
content = """
create_main_cluster = false
add_include_dir = 'conf.d'
"""
[[volume]]
name  = "pgdata"
path  = "/var/lib/postgresql"
owner = "postgres:postgres"
mode  = "0755"
`

// splitDB splits role db into db-server and a base role. The parts that the volume needs go into
// db-base, which db-server needs.
func (s *site) splitDB() {
	s.Helper()
	for _, path := range glob(filepath.Join(s.dir, "roles/db/*")) {
		text, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		s.write("roles/db-server/"+filepath.Base(path), string(text))
	}
	const role = "roles/db-server/role.toml"
	s.edit(role, `apt      = ["postgresql-15"]`, `needs.roles = ["db-base"]`)
	for _, section := range strings.Split(dbBase, "[[")[1:] {
		s.edit(role, "[["+section, "")
	}
	s.write("roles/db-base/role.toml", dbBase)
}

// TestAcknowledged: no row that toykat's database has acknowledged is lost by switches and
// rollbacks, and two nodes never have its volume at once. One release has the volume in the role of
// the server, the other in a role below that.
//
// Promise (Data and time): A volume that is not for two releases is with one node at a time during
// a switch, even when its service is in another role; no acknowledged row is lost. With
// role.TestVolumesBelow.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	rows := 0 // minimum number of acknowledged rows
	writers, pause := 1, 0.005
	if text := os.Getenv("ORRERY_ACKED_ROWS"); text != "" { // set by make test-chaos
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		writers, pause = 8, 0
	}
	s := newExample(t, "toykat", "it-acked")
	s.write("site.toml", "site.name = \""+s.name+"\"\n"+ackedSite)
	s.write("roles/client/role.toml",
		"pip = [\"asyncpg\"]\n[[secret]]\nname = \"db_password\"\n[[file]]\npath = \"/srv/insert.py\"\nsource = \"insert.py\"\n")
	s.write("roles/client/insert.py", fmt.Sprintf(inserter, writers, pause))
	s.splitDB()
	s.do("up")
	stop := s.watchVolume("db", "pgdata", "/var/lib/postgresql")
	c := s.client()

	s.do("stage", "db", "--release", "701")
	change := s.run("switch", "db", "--release", "701").want(0).took
	c.goesOn()
	s.do("rollback")
	c.goesOn()
	s.do("stage", "db", "--release", "701")
	s.do("switch", "db", "--release", "701")
	c.goesOn()
	for {
		s.killTurns(10, change, c.goesOn)
		if c.count() >= rows {
			break
		}
	}
	stop()

	acked := c.end()
	stored := map[int]int{}
	for _, text := range strings.Fields(s.sh("db",
		`runuser -u postgres -- psql -qAt -d toykat -c "SELECT value FROM samples WHERE receptor = 'client'"`)) {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		stored[n]++
	}
	for _, n := range acked {
		if stored[n] == 0 {
			t.Errorf("row %d was acknowledged and is not there", n)
		}
	}
	for n, times := range stored {
		if times > 1 {
			t.Errorf("row %d is there %d times", n, times)
		}
	}
	t.Logf("%d rows were acknowledged, %d are there; a switch takes %s", len(acked), len(stored),
		change.Round(time.Millisecond))
	s.settled()
}

// killTurns kills switches and rollbacks of db at random moments. After each kill, the next command
// brings db to one release.
func (s *site) killTurns(kills int, span time.Duration, then func()) {
	s.Helper()
	random := seed(s.T)
	for killed := 0; killed < kills; {
		args := []string{"switch", "db", "--release", "701"}
		if s.release("db") == 701 {
			args = []string{"rollback", "db"}
		} else {
			s.do("stage", "db", "--release", "701")
		}
		if s.killed(time.Duration(random.Float64()*float64(span)), args...) {
			killed++
		}
		next := []string{"up"}
		if random.IntN(2) == 0 && s.release("db") != 701 {
			next = []string{"stage", "db", "--release", "701"}
		}
		r := s.run(next...).want(0)
		if s.run("status", "--probe", "db").status != 0 {
			s.Errorf("not healthy after orrery %s\n%s%s", strings.Join(next, " "), r.out, r.errs)
		}
		if !s.Failed() {
			then()
		}
		if s.Failed() {
			s.Fatalf("after %d kills; the last was of %s", killed, strings.Join(args, " "))
		}
	}
}

// release returns the live release of a node.
func (s *site) release(node string) int {
	s.Helper()
	var rows []struct {
		Release    int
		Quarantine bool
	}
	r := s.run("status", "--json", node)
	if err := json.Unmarshal(replied(r.out), &rows); err != nil {
		s.Fatalf("status --json: %v\n%s%s", err, r.out, r.errs)
	}
	for _, row := range rows {
		if !row.Quarantine {
			return row.Release
		}
	}
	s.Fatalf("no node %s is live\n%s", node, r.out)
	return 0
}

// A client inserts rows while it runs.
type client struct {
	*site
	wait func() error
	out  *lines
	errs *bytes.Buffer
}

// lines are the output of a command so far.
type lines struct {
	sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) text() string {
	l.Lock()
	defer l.Unlock()
	return l.String()
}

// all returns the numbers on the complete lines.
func (l *lines) all() []int {
	var all []int
	for line := range strings.Lines(l.text()) {
		if n, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil && strings.HasSuffix(line, "\n") {
			all = append(all, n)
		}
	}
	return all
}

func (s *site) client() *client {
	s.Helper()
	cmd, _, errs := s.command("shell", "client", "--", "/opt/orrery/venv/bin/python", "/srv/insert.py")
	c := &client{site: s, out: &lines{}, errs: errs}
	cmd.Stdout = c.out
	var err error
	if c.wait, err = begin(cmd); err != nil {
		s.Fatal(err)
	}
	c.goesOn()
	return c
}

// goesOn waits until more rows are acknowledged.
func (c *client) goesOn() {
	c.Helper()
	before := c.count()
	c.eventually(func() error {
		if c.count() < before+5 {
			return fmt.Errorf("the client gets no answer from the database, after %d rows", before)
		}
		return nil
	})
}

// count returns how many rows are acknowledged.
func (c *client) count() int {
	c.out.Lock()
	defer c.out.Unlock()
	return bytes.Count(c.out.Bytes(), []byte("\n"))
}

// end stops the client and returns the numbers of the acknowledged rows.
func (c *client) end() []int {
	c.Helper()
	c.sh("client", "touch /run/end")
	if err := c.wait(); err != nil {
		c.Fatalf("the client: %v\n%s", err, c.errs)
	}
	return c.out.all()
}

// watchVolume checks repeatedly which nodes have a volume, according to the kernel, until the
// returned function is called. Two nodes must never have it.
func (s *site) watchVolume(node, volume, path string) (stop func()) {
	s.Helper()
	dir := filepath.Join(s.dirs.Volumes(s.name), volume, node)
	done, ended := make(chan struct{}), make(chan struct{})
	looks, held := 0, 0
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			having := append(s.mounting(dir, path), s.working(dir)...)
			nodes := map[string]bool{}
			for _, one := range having {
				nodes[one.node] = true
			}
			if looks++; len(nodes) == 1 {
				held++
			}
			if len(nodes) > 1 {
				s.Errorf("volume %s is with %v", volume, having)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		s.Logf("looked %d times at who has volume %s: one node %d times, else none", looks, volume, held)
		if nodes := s.mounting(dir, path); len(nodes) != 1 {
			s.Errorf("in the end volume %s is with %v", volume, nodes)
		}
	}
}

// A holder is a node that has a volume, identified by its mount namespace, and how it has it.
type holder struct{ node, how string }

// mounting returns the nodes in which a directory of the host is mounted for writing at a path.
func (s *site) mounting(dir, path string) (all []holder) {
	for _, file := range glob(s.dirs.Nodes(s.name) + "/*/pid") {
		monitor, _ := os.ReadFile(file)
		pid := strings.TrimSpace(string(monitor))
		child, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		for _, init := range strings.Fields(string(child)) {
			at := "/proc/" + init + "/root" + path
			var fs syscall.Statfs_t
			if !sameFile(at, dir) || syscall.Statfs(at, &fs) != nil || fs.Flags&syscall.MS_RDONLY != 0 {
				continue
			}
			if node := namespace(init); node != "" {
				all = append(all, holder{node, "mounted in " + filepath.Base(filepath.Dir(file))})
			}
		}
	}
	return all
}

// working returns the nodes in which a database server uses files below a directory of the host.
func (s *site) working(dir string) (all []holder) {
	for _, file := range glob("/proc/[0-9]*/comm") {
		if name, _ := os.ReadFile(file); string(name) != "postgres\n" {
			continue
		}
		process := filepath.Dir(file)
		if !sameFile(process+"/cwd", dir+"/15/main") {
			continue
		}
		if node := namespace(filepath.Base(process)); node != "" { // otherwise it has ended
			all = append(all, holder{node, "server " + filepath.Base(process)})
		}
	}
	return all
}

// namespace returns the node of a process, or "" if the process has ended.
func namespace(pid string) string {
	name, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return name
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
