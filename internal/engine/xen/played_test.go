package xen

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/host/xl"
	"orrery/internal/site"
	"orrery/test/need"
)

// TestPlayedToolstack: the played xl prints what the real one does, as far as package xl reads it,
// and fails when ordered to.
func TestPlayedToolstack(t *testing.T) {
	d := newDom0(t)
	all, err := xl.Domains(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "Domain-0" || all[0].ID != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if info, err := xl.ReadInfo(t.Context()); err != nil || !info.Runs("pvh") {
		t.Errorf("%+v, %v", info, err)
	}
	for _, verb := range []string{"destroy", "pause", "unpause", "shutdown", "reboot", "network-list"} {
		if err := xl.Run(t.Context(), verb, "orrery-x-1"); !xl.IsNotFound(err) {
			t.Errorf("%s of no domain: %v", verb, err)
		}
	}
	d.order(t, "list", "fail")
	if _, err := xl.Domains(t.Context()); err == nil || !strings.Contains(err.Error(), "list was to fail") {
		t.Errorf("%v", err)
	}
	d.order(t, "list", "hang")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := xl.Domains(ctx); err == nil {
		t.Error("it does not hang")
	}
	d.order(t, "list", "")
	one, err := d.take("orrery-x-1", "/x.cfg")
	must(t, err)
	if _, err := d.take("orrery-x-1", "/x.cfg"); err == nil {
		t.Error("two domains have one name")
	}
	if got, err := d.domain("orrery-x-1"); err != nil || got.ID != one.ID || got.Config != "/x.cfg" {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, os.RemoveAll(d.home("orrery-x-1")))
}

// TestPlayedConfig: the played toolstack reads what the engine writes.
func TestPlayedConfig(t *testing.T) {
	for _, kind := range site.XenTypes {
		o := read(filepath.Join("testdata", "domain-"+kind+".cfg"))
		d := aDomain()
		if o.one("name") != d.name || o.one("device_model_override") != d.model || o.one("type") != kind ||
			o.one("vcpus") != "2" {
			t.Errorf("%s: %v", kind, o)
		}
		cards, shares, channels := o.cards(), o.devices("p9"), o.devices("channel")
		if len(cards) != 2 || cards[1]["mac"] != "02:00:00:00:00:02" || cards[1]["script"] != d.linkScriptPath(1) {
			t.Errorf("%s: cards %v", kind, cards)
		}
		if len(shares) != 3 || shares[0]["tag"] != "root" || shares[2]["path"] != d.shares[2].dir {
			t.Errorf("%s: shares %v", kind, shares)
		}
		if len(channels) != ports+1 || channels[1]["path"] != d.run+"/agent0.sock" {
			t.Errorf("%s: channels %v", kind, channels)
		}
	}
}

// TestPlayedBackend: a console carries the input of one client after the other, and the guest's
// output during that. The backend opens no socket itself.
func TestPlayedBackend(t *testing.T) {
	if err := serveBackend([]string{"-chardev", "socket,id=x,path=/x,server=on"}); err == nil ||
		!strings.Contains(err.Error(), "open") {
		t.Errorf("%v", err)
	}
	r, err := newRing()
	need.Given(t, "pseudo-terminal", err)
	defer r.close()
	guest, err := openTerminal(r.path)
	must(t, err)
	defer guest.Close()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	defer l.Close()
	socket, err := l.File()
	must(t, err)
	ready, told, err := os.Pipe()
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Args = []string{playsQEMU, "-add-fd", "fd=3,set=0,opaque=ready", "-chardev", "socket,id=x,fd=4,server=on",
		"-add-fd", "fd=5,set=1", "-add-fd", "fd=6,set=2"}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{told, socket, r.ours, r.theirs}, os.Stderr
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if n, err := ready.Read(make([]byte, 1)); n != 1 {
		t.Fatalf("it is not ready: %v", err)
	}
	for i := range 3 {
		c, err := net.Dial("unix", path)
		must(t, err)
		question, answer := fmt.Sprintf("%d?\x00\x03", i), fmt.Sprintf("%d!\n", i)
		_, err = io.WriteString(c, question)
		must(t, err)
		typed := make([]byte, len(question))
		if _, err := io.ReadFull(guest, typed); err != nil || string(typed) != question {
			t.Fatalf("typed: %q, %v", typed, err)
		}
		_, err = io.WriteString(guest, answer)
		must(t, err)
		shown := make([]byte, len(answer))
		if _, err := io.ReadFull(c, shown); err != nil || string(shown) != answer {
			t.Fatalf("printed: %q, %v", shown, err)
		}
		must(t, c.Close())
	}
}
