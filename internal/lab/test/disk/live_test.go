package disk

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

func trial(p *place.Place) *test.Trial {
	return &test.Trial{Near: p, Of: 1, Barrier: func(context.Context) error { return nil },
		Keep: func(string, []byte) error { return nil }}
}

// here returns this machine as a place, with a directory on a disk.
func here(t *testing.T) *place.Place {
	dir, err := os.MkdirTemp("/var/tmp", "orrery-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &place.Place{Runner: host.Local{Name: "bare"}, Name: "bare", Dir: dir}
}

// apart runs commands in a mount namespace that ends with the process that holds it.
type apart struct {
	host.Local
	pid int
}

func (a apart) Run(ctx context.Context, c host.Command) error {
	c.Args = append([]string{"nsenter", "-t", fmt.Sprint(a.pid), "-m", "--"}, c.Args...)
	return a.Local.Run(ctx, c)
}

// mounted returns a place whose directory is on a separate file system.
func mounted(t *testing.T, kind, options string) *place.Place {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("unshare", "-m", "sh", "-c", `mount -t "$1" -o "$2" none "$3" && echo up && exec sleep 300`,
		"sh", kind, options, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("no %s: %q, %v", kind, line, err)
	}
	return &place.Place{Runner: apart{host.Local{Name: kind}, cmd.Process.Pid}, Name: kind, Dir: dir}
}

// measure checks a place, runs a trial, and checks that there is a sample for every figure.
func measure(t *testing.T, p *place.Place, text string) test.Result {
	t.Helper()
	d, err := New(from(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context(), trial(p)); err != nil {
		t.Fatal(err)
	}
	r, err := d.Run(t.Context(), trial(p))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range r.Samples {
		got[s.Figure] = s.Value
	}
	for _, l := range r.Labels {
		if l.Name == "too-fast" {
			got[l.Where] = 1
		}
	}
	for _, f := range d.Figures() {
		if got[f.Name] <= 0 {
			t.Errorf("%s: %v", f.Name, got[f.Name])
		}
	}
	t.Log(got)
	return r
}

func TestLiveFio(t *testing.T) {
	need.Integration(t)
	p := here(t)
	r := measure(t, p, "size = \"16MiB\"\nseconds = 0.3\nlatency = true")
	if d := r.Detail.(*fioDetail); len(d.Jobs) != 4 || d.Version == "" {
		t.Errorf("%+v", d)
	}
	if info, err := os.Stat(filepath.Join(p.Dir, "0", fioFile)); err != nil || info.Size() != 16<<20 {
		t.Errorf("the file: %v", err)
	}
	measure(t, p, "size = \"16MiB\"\nseconds = 0.2\n[[jobs]]\nrw = \"write\"\nthreads = 4\n[[jobs]]\nrw = \"randread\"\nthreads = 512")
}

// TestLiveAnew: the directories of recreated nodes are gone, and the next check creates them again.
func TestLiveAnew(t *testing.T) {
	need.Integration(t)
	for program, options := range map[string]string{
		"fio":      "size = \"8MiB\"\nseconds = 0.1\nmatrices = []\njobs = [{ rw = \"read\" }]",
		"bonnie++": "program = \"bonnie++\"\nsize = \"64MiB\"",
	} {
		t.Run(program, func(t *testing.T) {
			p := here(t)
			d, err := New(from(options))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := d.Check(t.Context(), trial(p)); err != nil {
					t.Fatal(err)
				}
				if _, err := d.Run(t.Context(), trial(p)); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(p.Dir); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestLiveRAM: on ramfs, a label reports that O_DIRECT is missing, and direct = "yes" is refused.
func TestLiveRAM(t *testing.T) {
	need.Integration(t)
	p := mounted(t, "ramfs", "rw")
	r := measure(t, p, "size = \"16MiB\"\nseconds = 0.2")
	if got := labelNames(r.Labels); got != "o_direct page-cache" {
		t.Errorf("labels %s", got)
	}
	d, err := New(from(`direct = "yes"`))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context(), trial(p)); err == nil ||
		!strings.Contains(err.Error(), "does not support O_DIRECT (set direct = \"auto\"") {
		t.Errorf("without O_DIRECT: %v", err)
	}
}

// TestLiveFull: a disk that is too small for all copies is reported before anything is written. A
// disk that fills up during a trial is reported too.
func TestLiveFull(t *testing.T) {
	need.Integration(t)
	p := mounted(t, "tmpfs", "size=24m")
	d, err := New(from("size = \"16MiB\"\nseconds = 0.1"))
	if err != nil {
		t.Fatal(err)
	}
	many := trial(p)
	many.Of = 2
	if err := d.Check(t.Context(), many); err == nil ||
		!strings.Contains(err.Error(), "but 33554432 are needed (2 × 16M)") {
		t.Errorf("of two copies: %v", err)
	}
	if err := d.Check(t.Context(), trial(p)); err != nil {
		t.Error(err)
	}
	b, err := New(from("program = \"bonnie++\"\nsize = \"16MiB\""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), trial(p)); err == nil || !strings.HasPrefix(err.Error(), "tmpfs: bonnie++: ") {
		t.Errorf("of a disk that is full: %v", err)
	}
	shell(t.Context(), p, `rm -f "$2"; head -c 12M /dev/zero > "$1"`, p.Dir+"/other", p.Dir+"/0/fio.data")
	if _, err := d.Run(t.Context(), trial(p)); err == nil ||
		!strings.Contains(err.Error(), "but 16777216 are needed") {
		t.Errorf("of a disk that has become full: %v", err)
	}
	none := *p
	none.Dir = "/proc/none"
	if err := d.Check(t.Context(), trial(&none)); err == nil ||
		!strings.Contains(err.Error(), "the directory /proc/none/0 cannot be created") {
		t.Errorf("without a directory: %v", err)
	}
}

// TestLiveSeconds: a job of several seconds has a series, and its logs are removed.
func TestLiveSeconds(t *testing.T) {
	need.Integration(t)
	p := here(t)
	d, err := New(from("seconds = 4\nsize = \"16MiB\"\nmatrices = []\n[[jobs]]\nrw = \"randrw\"\nthreads = 2\n[[jobs]]\nrw = \"write\"\nblock = \"64KiB\""))
	if err != nil {
		t.Fatal(err)
	}
	tr := trial(p)
	if err := d.Check(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	r, err := d.Run(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 3 {
		t.Fatalf("%+v", r.Series)
	}
	for i, s := range r.Series {
		sum := 0.0
		for _, v := range s.Values {
			sum += v
		}
		mean, figure := sum/float64(len(s.Values)), r.Samples[i]
		if s.Figure != figure.Figure || len(s.Values) < 3 || mean > 2*figure.Value || mean < figure.Value/2 {
			t.Errorf("%s: %v, of %g", s.Figure, s.Values, figure.Value)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, "*", fioLog+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLiveBonnie(t *testing.T) {
	need.Integration(t)
	p := here(t)
	text := func(mib int) string {
		return fmt.Sprintf("program = \"bonnie++\"\nsize = \"%dMiB\"\nfiles = 1\ndirect = \"yes\"", mib)
	}
	size := 64
	for ; size < 1024; size *= 2 { // bonnie++ reports no rate for a phase that is too short
		d, err := New(from(text(size)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), trial(p)); err == nil || !strings.Contains(err.Error(), "too fast to report a rate") {
			break
		}
	}
	measure(t, p, text(2*size)) // with a margin
}

// TestLiveIozone: if iozone is missing (no free part of Debian has it), the error has a cure.
func TestLiveIozone(t *testing.T) {
	need.Integration(t)
	text := "program = \"iozone\"\nsize = \"4MiB\"\nrecords = [\"64KiB\", \"1MiB\"]"
	if _, err := exec.LookPath("iozone"); err == nil {
		measure(t, here(t), text)
	}
	d, err := New(from(text))
	if err != nil {
		t.Fatal(err)
	}
	p := here(t)
	p.Programs = func(name string) []string { return []string{"/nowhere/" + name} }
	if err := d.Check(t.Context(), trial(p)); err == nil ||
		!strings.Contains(err.Error(), "bare: iozone cannot be run") || !strings.Contains(err.Error(), "iozone3") {
		t.Errorf("without iozone: %v", err)
	}
}
