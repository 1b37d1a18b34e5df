package xen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// This test program plays all programs on a Dom0, depending on its name or on a variable:
//
//   - what the toolstack runs in place of QEMU and of its scripts, which is Orrery's own program on
//     a real Dom0;
//   - xl and xenstore-write (toolstack_test.go), and the process that watches a domain
//     (domain_test.go);
//   - the QEMU of a domain (backend_test.go);
//   - the guest: its kernel and init, which mount what they are ordered to, and the real agent
//     (guest_test.go).
//
// Processes, control groups, namespaces, sockets and links are real. In place of Xen, a guest has
// namespaces and a control group of its own, and terminals in place of rings.
const roleVariable = "ORRERY_XEN_TEST"

// Names of programs, which are links to the test program.
const (
	playsXL       = "xl"
	playsXenstore = "xenstore-write"
	playsQEMU     = "xen-qemu-system-i386"
)

// Roles of other programs.
const (
	watches = "watches"
	boots   = "boots"
	serves  = "serves"
)

func init() {
	if os.Getenv(roleVariable) == boots {
		// An init keeps the first thread, on which the first process of a guest receives signals,
		// as systemd does. TestMain may run on another thread.
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case ModelVerb:
			leave(RunDeviceModel(os.Args[2], os.Args[3:]))
		case LinkVerb:
			i, err := strconv.Atoi(os.Args[3])
			leave(errors.Join(err, SetUpLink(os.Args[2], i, os.Args[4])))
		}
	}
	switch os.Getenv(roleVariable) {
	case watches:
		leave(watch(os.Args[1], os.Args[2]))
	case boots:
		leave(boot1())
	case serves:
		leave(serve())
	}
	switch filepath.Base(os.Args[0]) {
	case playsXL:
		leave(toolstackHere().do(os.Args[1:]))
	case playsXenstore:
		leave(os.WriteFile(filepath.Join(os.Getenv(xenstoreVariable), filepath.Base(os.Args[1])), []byte(os.Args[2]), 0o600))
	case playsQEMU:
		leave(serveBackend(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func leave(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A dom0 is a directory with the programs of a Dom0 and the records of its domains.
type dom0 struct{ dir string }

// newDom0 turns this machine into a Dom0 for a test.
func newDom0(t *testing.T) dom0 {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", dom0s)
	must(t, err)
	d := dom0{dir}
	t.Cleanup(func() {
		d.endAll(t)
		must(t, os.RemoveAll(dir))
	})
	must(t, os.Chmod(dir, 0o755)) // guests run programs from here
	for _, name := range []string{"bin", "domains", "faults"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	self, err := os.Executable()
	must(t, err)
	first := filepath.Join(dir, "bin", playsXL)
	must(t, copyFile(self, first))
	for _, name := range []string{playsXenstore, playsQEMU} {
		must(t, os.Link(first, filepath.Join(dir, "bin", name)))
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	return d
}

// dom0s is the prefix of the names of these directories in /var/tmp.
const dom0s = "orrery-dom0-"

// sweepDom0s ends what a killed test run has left.
func sweepDom0s(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob("/var/tmp/" + dom0s + "*")
	must(t, err)
	for _, dir := range left {
		all, _ := dom0{dir}.domains()
		for _, one := range all {
			must(t, dom0{dir}.destroy(one))
		}
		must(t, os.RemoveAll(dir))
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// order makes a verb of xl fail from now on: "fail", "hang", or "half", which fails after the
// domain has been created. "" removes the order.
func (d dom0) order(t *testing.T, verb, how string) {
	t.Helper()
	path := filepath.Join(d.dir, "faults", verb)
	if how == "" {
		must(t, os.Remove(path))
		return
	}
	must(t, os.WriteFile(path, []byte(how), 0o600))
}

func (d dom0) fault(verb string) string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "faults", verb))
	return string(text)
}

// endAll ends what a test has left, and reports it.
func (d dom0) endAll(t *testing.T) {
	all, err := d.domains()
	must(t, err)
	for _, one := range all {
		t.Errorf("domain %s is left", one.Name)
		must(t, d.destroy(one))
	}
}

// A guestDomain is the record of a domain of this Dom0.
type guestDomain struct {
	ID      int
	Name    string
	Config  string // path
	Guest   int    // process id of its first process
	Backend int    // process id of its QEMU
	Links   []int  // interface indexes of the host's ends of its cards
}

func (d dom0) home(name string) string { return filepath.Join(d.dir, "domains", name) }

func (d dom0) domain(name string) (one guestDomain, err error) {
	text, err := os.ReadFile(filepath.Join(d.home(name), "domain.json"))
	if errors.Is(err, os.ErrNotExist) {
		return one, fmt.Errorf("%s is an invalid domain identifier (rc=-6)", name)
	}
	if err == nil {
		err = json.Unmarshal(text, &one)
	}
	return one, err
}

func (d dom0) domains() (all []guestDomain, err error) {
	names, err := os.ReadDir(filepath.Join(d.dir, "domains"))
	for _, name := range names {
		if one, err := d.domain(name.Name()); err == nil {
			all = append(all, one)
		}
	}
	return all, err
}

// record writes the record of a domain.
func (d dom0) record(one guestDomain) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	path := filepath.Join(d.home(one.Name), "domain.json")
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// take reserves a number and a directory for a domain.
func (d dom0) take(name, config string) (one guestDomain, err error) {
	lock, err := os.OpenFile(filepath.Join(d.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return one, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return one, err
	}
	text, _ := io.ReadAll(lock)
	last, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if _, err := lock.WriteAt([]byte(strconv.Itoa(last+1)), 0); err != nil {
		return one, err
	}
	if err := os.Mkdir(d.home(name), 0o755); err != nil {
		return one, fmt.Errorf(`libxl: error: libxl_create.c:1:x: Domain with name "%s" already exists`, name)
	}
	one = guestDomain{ID: last + 1, Name: name, Config: config}
	return one, d.record(one)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for begun := time.Now(); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
